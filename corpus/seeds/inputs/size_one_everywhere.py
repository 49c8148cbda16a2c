import torch

META = {
    "mode": "forward",
    "title": "reductions over dimensions of size one",
    "features": ["boundary=keepdim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 5, 1)
    return (x,)


def fn(x):
    return x.sum(0), x.amax(2, keepdim=True), x.var(1)
