import torch

META = {"mode": "forward", "title": "a Python loop", "features": ["control=for_loop"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    r = x
    for i in range(3):
        r = torch.sin(r) + i
    return r
