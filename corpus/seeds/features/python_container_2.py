from collections import namedtuple

import torch


Pair = namedtuple("Pair", ["first", "second"])


META = {"mode": "forward", "title": "a namedtuple or dictionary class", "features": ["python=container"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = Pair(torch.sin(x), x)
    return s.first + s.second
