import torch

META = {
    "mode": "forward",
    "title": "cumulative product, then cumulative maximum",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.rand(3, 11) + 0.5
    return (x,)


def fn(x):
    return x.cumprod(1).cummax(1)
