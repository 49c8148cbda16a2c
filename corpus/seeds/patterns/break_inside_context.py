import torch

META = {
    "mode": "forward",
    "title": "graph break inside a context manager",
    "features": ["control=with", "python=graph_break", "context=no_grad"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    with torch.no_grad():
        s = x * 2
        torch._dynamo.graph_break()
        t = s + 1
    return t * x
