import torch

META = {"mode": "forward", "title": "a division with a rounding mode", "features": ["boundary=rounding_mode"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    y = torch.randn(17)
    return x, y


def fn(x, y):
    return torch.div(x, y.abs() + 1, rounding_mode="trunc")
