import torch

META = {
    "mode": "forward",
    "title": "mask of the largest entries by topk and scatter",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x.topk(2, -1).indices
    t = torch.zeros_like(x).scatter(-1, s, 1.0)
    return x * t
