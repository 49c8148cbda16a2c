import torch

META = {"mode": "forward", "title": "searchsorted against a sliced sequence", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    s = torch.arange(12).float()
    return torch.searchsorted(s[3:], x.abs())
