import torch

META = {"mode": "forward", "title": "a cast from integer to floating", "features": ["dtype=float32"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (2, 3, 8))
    return (x,)


def fn(x):
    return x.to(torch.float32)
