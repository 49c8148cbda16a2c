import torch

META = {
    "mode": "forward",
    "title": "a write through a view around a graph break",
    "features": ["mutation=inplace_method", "python=graph_break", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    s = x.clone()
    t = s[0]
    torch._dynamo.graph_break()
    t.add_(1)
    return s * 2
