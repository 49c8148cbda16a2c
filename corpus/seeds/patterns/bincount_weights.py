import torch

META = {
    "mode": "forward",
    "title": "weighted bincount or histogram, then a count",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (17,))
    w = torch.rand(17)
    return x, w


def fn(x, w):
    s = torch.bincount(x.abs(), w)
    return torch.count_nonzero(s)
