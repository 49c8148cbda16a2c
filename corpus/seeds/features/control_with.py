import torch

META = {"mode": "forward", "title": "a context manager", "features": ["control=with", "context=no_grad"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    with torch.no_grad():
        s = x.abs()
    return x / (s + 1)
