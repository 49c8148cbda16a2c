import torch

META = {"mode": "forward", "title": "column means of 520 short rows", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(520, 3)
    return (x,)


def fn(x):
    return x.mean(0), x.std(0)
