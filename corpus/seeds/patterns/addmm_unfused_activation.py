import torch

META = {"mode": "forward", "title": "addmm followed by an activation", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    v = torch.randn(5, 5)
    w = torch.randn(5)
    return x, v, w


def fn(x, v, w):
    return torch.nn.functional.gelu(torch.addmm(w, x, v))
