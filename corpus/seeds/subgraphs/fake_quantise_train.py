import torch

META = {
    "mode": "forward",
    "title": "fake quantisation with a straight-through gradient",
    "features": ["python=detach"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    s = (x * 16).round() / 16
    return x + (s - x).detach()
