import torch

META = {"mode": "forward", "title": "torch.cond", "features": ["control=cond", "python=lambda"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    return torch.cond(x.sum() > 0, lambda p: p.sin(), lambda p: p * 2, (x,))
