import torch

META = {"mode": "forward", "title": "pooling with ceil_mode", "features": ["boundary=ceil_mode"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    return torch.nn.functional.max_pool1d(x, 2, ceil_mode=True)
