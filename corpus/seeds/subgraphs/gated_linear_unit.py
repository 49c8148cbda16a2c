import torch

META = {"mode": "forward", "title": "SwiGLU: two products, one gates the other", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    w = torch.randn(7, 5)
    v = torch.randn(7, 5)
    return x, w, v


def fn(x, w, v):
    s = torch.nn.functional.silu(x @ w)
    return s * (x @ v)
