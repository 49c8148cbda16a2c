import torch

META = {
    "mode": "forward",
    "title": "denormal numbers scaled up again",
    "features": ["boundary=float_extreme"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 8) * 1e-40
    return (x,)


def fn(x):
    return x * 1e38, x == 0
