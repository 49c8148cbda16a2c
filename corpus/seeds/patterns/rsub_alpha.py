import torch

META = {"mode": "forward", "title": "reversed subtraction with a scale", "features": ["boundary=alpha"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    y = torch.randn(6, 5)
    return x, y


def fn(x, y):
    return torch.rsub(x, 3, alpha=2), torch.sub(x, y, alpha=-1)
