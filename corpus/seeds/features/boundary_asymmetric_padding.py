import torch

META = {
    "mode": "forward",
    "title": "padding that differs between dimensions",
    "features": ["boundary=asymmetric_padding"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    return (x,)


def fn(x):
    return torch.nn.functional.max_pool2d(x, 3, stride=1, padding=(1, 0))
