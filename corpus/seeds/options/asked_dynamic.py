import torch

META = {
    "mode": "forward",
    "title": "dynamic shapes asked of torch.compile",
    "features": ["context=second_call", "config=compile_dynamic"],
    "compile": {"dynamic": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 5)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(4, 6)
    return (x,)


def fn(x):
    return x.repeat(2, 1).cumsum(0)
