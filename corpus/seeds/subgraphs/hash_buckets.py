import torch

META = {"mode": "forward", "title": "hash of integers to buckets, looked up", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (8,))
    w = torch.randn(7)
    return x, w


def fn(x, w):
    s = ((x * 2654435761) ^ 40503) % 7
    return w[s]
