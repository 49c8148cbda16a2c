import torch

META = {"mode": "forward", "title": "gather at positions computed in int32", "features": ["dtype=int32"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(20)
    k = torch.randint(0, 10, (6,), dtype=torch.int32)
    return x, k


def fn(x, k):
    return x[(k * 2).long()]
