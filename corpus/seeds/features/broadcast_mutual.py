import torch

META = {"mode": "forward", "title": "both arguments expand", "features": ["boundary=none_index"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    return x[:, None] * x
