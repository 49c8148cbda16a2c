import torch

META = {"mode": "forward", "title": "values gathered at the indices of a sort", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 9)
    y = torch.randn(4, 9)
    return x, y


def fn(x, y):
    return y.gather(1, x.argsort(1))
