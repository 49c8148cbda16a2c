import torch

META = {"mode": "forward", "title": "a cast to bool", "features": ["dtype=bool"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    return x.to(torch.bool)
