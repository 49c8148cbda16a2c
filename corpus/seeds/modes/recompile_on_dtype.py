import torch

META = {
    "mode": "forward",
    "title": "a second call with another dtype",
    "features": ["context=second_call", "mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(5, dtype=torch.float64)
    return (x,)


def fn(x):
    return x * 2 + x.sum()
