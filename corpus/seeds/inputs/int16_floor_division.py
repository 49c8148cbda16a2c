import torch

META = {
    "mode": "forward",
    "title": "floor division and remainder of int16 by a constant",
    "features": ["dtype=int16"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-50, 50, (15,), dtype=torch.int16)
    return (x,)


def fn(x):
    return x // 7, x % 7
