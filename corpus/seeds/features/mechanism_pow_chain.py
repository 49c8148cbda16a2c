import torch

META = {"mode": "forward", "title": "powers of powers", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    s = x.abs().pow(2)
    return s.pow(0.5)
