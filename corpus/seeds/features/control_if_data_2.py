import torch

META = {"mode": "forward", "title": "a branch that depends on data", "features": ["control=if_data"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    r = x + 1
    if (x > 3).any():
        r = r * 2
    return r
