import torch

META = {"mode": "forward", "title": "buckets of sorted boundaries", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(12)
    v = torch.linspace(-2, 2, 5)
    return x, v


def fn(x, v):
    return torch.searchsorted(v, x, right=True), torch.bucketize(x, v)
