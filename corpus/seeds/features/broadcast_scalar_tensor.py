import torch

META = {"mode": "forward", "title": "a 0-dimensional tensor with a larger one", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    w = torch.tensor(0.75)
    return x, w


def fn(x, w):
    return x * w
