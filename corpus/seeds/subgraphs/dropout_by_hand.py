import torch

META = {
    "mode": "forward",
    "title": "dropout from a uniform draw and a comparison",
    "features": ["context=random"],
    "random": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    s = torch.rand(2, 5, 7) > 0.4
    return x * s / 0.6
