import torch

META = {"mode": "forward", "title": "a lambda", "features": ["python=lambda"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    half = lambda p: p * 0.5
    return half(torch.sin(x))
