import torch

META = {"mode": "forward", "title": "a slice with a step above 1", "features": ["boundary=slice_step"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return x[::2]
