import torch

META = {"mode": "forward", "title": "maxima of rows that hold NaN", "features": ["boundary=float_extreme"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.where(torch.rand(4, 6) > 0.8, torch.randn(4, 6), float("nan"))
    return (x,)


def fn(x):
    return x.amax(1), torch.fmax(x, x.flip(1))
