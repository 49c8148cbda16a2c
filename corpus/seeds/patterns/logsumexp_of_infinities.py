import torch

META = {
    "mode": "forward",
    "title": "logsumexp or logcumsumexp with infinities",
    "features": ["boundary=float_extreme", "boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x.masked_fill(x > 0, float("-inf"))
    return torch.logsumexp(s, -1), torch.logcumsumexp(s, -1)
