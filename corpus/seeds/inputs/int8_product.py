import torch

META = {
    "mode": "forward",
    "title": "sum of products of int8, accumulated in int64",
    "features": ["boundary=negative_dim", "dtype=int8"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 9, (6, 16), dtype=torch.int8)
    y = torch.randint(-9, 9, (6, 16), dtype=torch.int8)
    return x, y


def fn(x, y):
    return (x * y).sum(-1), (x + y).abs()
