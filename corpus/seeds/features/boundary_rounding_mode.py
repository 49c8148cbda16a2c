import torch

META = {"mode": "forward", "title": "a division with a rounding mode", "features": ["boundary=rounding_mode"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    return torch.div(x, 0.7, rounding_mode="floor")
