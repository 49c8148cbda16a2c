import torch

META = {
    "mode": "forward",
    "title": "a product over an inner dimension of size zero",
    "features": ["boundary=zero_size"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 0)
    y = torch.randn(0, 5)
    return x, y


def fn(x, y):
    return x @ y + 1
