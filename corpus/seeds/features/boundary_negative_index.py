import torch

META = {"mode": "forward", "title": "a negative index", "features": ["boundary=negative_index"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return x[-1]
