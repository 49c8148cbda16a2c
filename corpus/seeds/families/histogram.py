import torch

META = {"mode": "forward", "title": "a histogram of integers with weights", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    k = torch.randint(0, 5, (30,))
    x = torch.rand(30)
    return k, x


def fn(k, x):
    return torch.bincount(k, weights=x, minlength=8)
