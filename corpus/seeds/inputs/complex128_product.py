import torch

META = {
    "mode": "forward",
    "title": "matrix product of complex numbers with a conjugate transpose",
    "features": ["dtype=complex128"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, dtype=torch.complex128)
    return (x,)


def fn(x):
    return x @ x.mH
