import torch

META = {"mode": "forward", "title": "indexing with a boolean mask", "features": ["boundary=boolean_mask"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    return x[x > 0]
