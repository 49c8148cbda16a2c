import torch

META = {"mode": "forward", "title": "a branch on shapes or flags", "features": ["control=if_static"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    r = x * 2
    if x.shape[0] > 2:
        r = r + 1
    return r
