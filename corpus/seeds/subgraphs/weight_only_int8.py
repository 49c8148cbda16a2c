import torch

META = {"mode": "forward", "title": "product with a weight stored as int8", "features": ["dtype=int8"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    k = torch.randint(-127, 128, (4, 5), dtype=torch.int8)
    w = torch.rand(4)
    return x, k, w


def fn(x, k, w):
    return (x @ k.t().float()) * w
