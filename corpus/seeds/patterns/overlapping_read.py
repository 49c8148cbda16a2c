import torch

META = {"mode": "forward", "title": "reads of an overlapping view", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    s = x.unfold(0, 4, 1)
    return s * 2 - s.flip(1)
