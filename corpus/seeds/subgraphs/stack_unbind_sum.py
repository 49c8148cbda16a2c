import torch

META = {"mode": "forward", "title": "stack, unbind, sum", "features": ["boundary=tuple_dim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    y = torch.randn(8)
    return x, y


def fn(x, y):
    s, t, u = torch.stack((x, y, x * y)).unbind(0)
    return s + t * u
