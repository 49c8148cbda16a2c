import torch

META = {"mode": "forward", "title": "a reduction that keeps its dimension", "features": ["boundary=keepdim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    s = x.amax(0, keepdim=True)
    return x - s
