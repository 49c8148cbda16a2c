import torch

META = {"mode": "forward", "title": "an einsum of three operands", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    y = torch.randn(4, 5)
    w = torch.randn(5)
    return x, y, w


def fn(x, y, w):
    return torch.einsum("ij,jk,k->i", x, y, w)
