import torch

META = {"mode": "forward", "title": "a cast to a wider floating dtype", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    return x.double()
