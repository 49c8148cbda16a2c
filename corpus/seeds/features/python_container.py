import torch

META = {"mode": "forward", "title": "a namedtuple or dictionary class", "features": ["python=container"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    y = torch.randn(8)
    return x, y


def fn(x, y):
    s = dict(left=x, right=y)
    return s["left"] * s["right"]
