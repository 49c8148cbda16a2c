import torch

META = {"mode": "forward", "title": "multiplication by a complex phase", "features": ["dtype=complex64"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 3, dtype=torch.complex64)
    y = torch.randn(3)
    return x, y


def fn(x, y):
    return x * torch.polar(torch.ones_like(y), y), x.abs()
