import torch

META = {"mode": "forward", "title": "Python arithmetic on sizes", "features": ["python=shape_arithmetic"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    return x.sum(0) / x.size(0)
