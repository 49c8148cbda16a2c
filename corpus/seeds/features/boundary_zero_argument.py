import torch

META = {"mode": "forward", "title": "a keyword argument of zero", "features": ["boundary=zero_argument"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    return torch.var(x, dim=1, correction=0)
