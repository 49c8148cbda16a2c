import torch

META = {"mode": "forward", "title": "detach in the middle of the graph", "features": ["python=detach"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    return x + torch.sin(x).detach()
