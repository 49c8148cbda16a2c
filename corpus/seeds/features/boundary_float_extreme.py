import torch

META = {
    "mode": "forward",
    "title": "an infinite, NaN or enormous scalar argument",
    "features": ["boundary=float_extreme"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    return torch.clamp(x, min=float("-inf"))
