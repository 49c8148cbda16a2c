import torch

META = {
    "mode": "forward",
    "title": "norm of numbers whose squares overflow",
    "features": ["boundary=float_extreme"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 5) * 1e25
    return (x,)


def fn(x):
    return torch.linalg.vector_norm(x, dim=1), x.abs().amax()
