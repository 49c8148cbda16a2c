import torch

META = {
    "mode": "forward",
    "title": "reverse-mode Jacobian of a gradient",
    "features": ["python=lambda", "python=transform"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    return torch.func.jacrev(torch.func.grad(lambda p: (p**3).sum()))(x)
