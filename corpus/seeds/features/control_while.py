import torch

META = {"mode": "forward", "title": "a while loop", "features": ["control=while"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    s = 0
    r = x
    while s < 3:
        r = r * 0.5 + 1
        s = s + 1
    return r
