import torch

META = {"mode": "forward", "title": "a cast to float8 and back", "features": ["dtype=float8"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 8)
    return (x,)


def fn(x):
    return x.to(torch.float8_e4m3fn).float() * 2
