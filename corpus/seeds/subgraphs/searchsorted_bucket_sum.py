import torch

META = {"mode": "forward", "title": "values put into buckets and counted", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    s = torch.linspace(-2, 2, 4)
    t = torch.bucketize(x, s)
    return torch.zeros(5).index_add(0, t, torch.ones_like(x))
