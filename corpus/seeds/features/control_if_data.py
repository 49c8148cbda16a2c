import torch

META = {"mode": "forward", "title": "a branch that depends on data", "features": ["control=if_data"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    if x.sum() > 0:
        r = x * 2
    else:
        r = x - 1
    return r
