import torch

META = {"mode": "forward", "title": "all but the three largest set to zero", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 9)
    return (x,)


def fn(x):
    s, k = x.topk(3, dim=1)
    return torch.zeros_like(x).scatter(1, k, s)
