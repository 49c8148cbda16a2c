import torch

META = {
    "mode": "forward",
    "title": "an operation in place",
    "features": ["topology=in_place", "mutation=inplace_method"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x * 2
    s.add_(1)
    return s.clone()
