import torch

META = {"mode": "forward", "title": "try and except", "features": ["control=try", "control=if_static"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    try:
        if x.dim() > 1:
            raise ValueError
        r = x * 2
    except ValueError:
        r = x + 1
    return r
