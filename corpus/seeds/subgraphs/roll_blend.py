import torch

META = {"mode": "forward", "title": "neighbours by roll, blended", "features": ["boundary=negative_dim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    s = x.roll(1, -1)
    t = x.roll(-1, -1)
    return 0.25 * s + 0.5 * x + 0.25 * t
