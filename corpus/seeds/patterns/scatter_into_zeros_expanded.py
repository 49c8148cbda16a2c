import torch

META = {"mode": "forward", "title": "scatter_add into an expanded constant", "features": ["dtype=int64"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    k = torch.zeros(2, 5, dtype=torch.int64)
    return x, k


def fn(x, k):
    return torch.zeros(1).expand(2, 5).scatter_add(1, k, x.expand(2, 5))
