import torch

META = {"mode": "forward", "title": "function transforms", "features": ["python=transform", "python=lambda"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    return torch.vmap(lambda p: p.sin() * 2)(x)
