import torch

META = {"mode": "forward", "title": "a dimension counted from the end", "features": ["boundary=negative_dim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    return x.sum(dim=-1)
