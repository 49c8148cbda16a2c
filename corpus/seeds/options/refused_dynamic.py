import torch

META = {
    "mode": "forward",
    "title": "dynamic shapes refused, called with two sizes",
    "features": ["context=second_call", "config=static_shapes", "boundary=slice_step"],
    "compile": {"dynamic": False},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 5)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(2, 4)
    return (x,)


def fn(x):
    return x.flatten()[::2] * x.numel()
