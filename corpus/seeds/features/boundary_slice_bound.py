import torch

META = {
    "mode": "forward",
    "title": "a slice bound that is negative or past the end",
    "features": ["boundary=slice_bound"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    return x[-3:]
