import torch

META = {"mode": "forward", "title": "batched product of complex views", "features": ["dtype=complex64"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16, dtype=torch.complex64)
    return (x,)


def fn(x):
    return x @ x.mH
