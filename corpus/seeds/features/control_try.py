import torch

META = {"mode": "forward", "title": "try and except", "features": ["control=try"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    try:
        r = x.reshape(60)
    except RuntimeError:
        r = x.flatten()
    return r
