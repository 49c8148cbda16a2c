import torch

META = {"mode": "forward", "title": "a comparison for equality after a cast", "features": ["dtype=float16"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    y = torch.randn(6, 5)
    return x, y


def fn(x, y):
    return x.to(torch.float16) == y
