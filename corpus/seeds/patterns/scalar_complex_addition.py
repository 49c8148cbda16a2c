import torch

META = {"mode": "forward", "title": "sum of zero-dimensional complex tensors", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    s = torch.tensor(2.5 + 1j)
    return x * (s + s).real
