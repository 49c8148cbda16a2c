import torch

META = {"mode": "forward", "title": "a scaled addition (alpha, beta)", "features": ["boundary=alpha"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    y = torch.randn(3, 4)
    return x, y


def fn(x, y):
    return torch.add(x, y, alpha=3)
