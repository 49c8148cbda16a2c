import torch

META = {"mode": "forward", "title": "feed-forward block: linear, GELU, linear", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    w = torch.randn(6, 4)
    v = torch.randn(4, 6)
    return x, w, v


def fn(x, w, v):
    s = torch.nn.functional.gelu(torch.nn.functional.linear(x, w))
    return torch.nn.functional.linear(s, v)
