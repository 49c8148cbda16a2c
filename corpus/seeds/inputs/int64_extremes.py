import torch

META = {
    "mode": "forward",
    "title": "extremes of int64 under shifts and absolute values",
    "features": ["mode=forward"],
}


def build_inputs():
    x = torch.tensor([2**63 - 1, -(2**63) + 1, 0, -1])
    return (x,)


def fn(x):
    return x >> 3, x.abs(), x // 3
