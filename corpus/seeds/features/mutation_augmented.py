import torch

META = {"mode": "forward", "title": "augmented assignment", "features": ["mutation=augmented"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    y = torch.randn(2, 16)
    return x, y


def fn(x, y):
    r = x * 2
    r += y
    return r
