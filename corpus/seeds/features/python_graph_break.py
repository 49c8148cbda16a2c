import torch

META = {"mode": "forward", "title": "a graph break", "features": ["python=graph_break"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = torch.sin(x)
    torch._dynamo.graph_break()
    return s * 2
