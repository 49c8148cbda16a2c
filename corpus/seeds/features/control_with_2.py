import torch

META = {"mode": "forward", "title": "a context manager", "features": ["control=with"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    with torch.enable_grad():
        r = torch.sin(x) * 2
    return r
