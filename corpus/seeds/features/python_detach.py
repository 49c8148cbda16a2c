import torch

META = {"mode": "forward", "title": "detach in the middle of the graph", "features": ["python=detach"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = x.detach()
    return x * s
