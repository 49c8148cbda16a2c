import torch

META = {"mode": "forward", "title": "float32 and float64 in one operator", "features": ["dtype=float64"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    w = torch.randn(5, dtype=torch.float64)
    return x, w


def fn(x, w):
    return x - w
