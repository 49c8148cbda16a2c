import torch

META = {
    "mode": "forward",
    "title": "values taken at their argmax",
    "features": ["boundary=keepdim", "boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = x.abs().argmax(-1, keepdim=True)
    return x.take_along_dim(s, -1) - x
