import torch

META = {
    "mode": "forward",
    "title": "channels dropped as a whole",
    "features": ["context=random"],
    "random": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 6)
    return (x,)


def fn(x):
    return torch.nn.functional.dropout2d(x, 0.5) + 1
