import torch

META = {"mode": "backward", "title": "gradient through a write at positions", "features": ["mode=backward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, requires_grad=True)
    k = torch.tensor([0, 2, 2])
    v = torch.randn(3, requires_grad=True)
    return x, k, v


def fn(x, k, v):
    return x.index_put((k,), v, accumulate=True).sin()
