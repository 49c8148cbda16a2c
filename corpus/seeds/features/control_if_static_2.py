import torch

META = {"mode": "forward", "title": "a branch on shapes or flags", "features": ["control=if_static"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return torch.sin(x) if x.dim() > 1 else torch.cos(x)
