import torch

META = {"mode": "forward", "title": "counts and logic of masks", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.rand(4, 9) > 0.5
    y = torch.rand(4, 9) > 0.5
    return x, y


def fn(x, y):
    return (x & ~y).sum(1), torch.logical_xor(x, y).any(0)
