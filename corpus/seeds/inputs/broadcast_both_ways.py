import torch

META = {"mode": "forward", "title": "an outer difference, both sides expanded", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 1)
    y = torch.randn(1, 7)
    return x, y


def fn(x, y):
    return (x - y).abs().amin(1)
