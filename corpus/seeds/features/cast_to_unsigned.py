import torch

META = {"mode": "forward", "title": "a cast to an unsigned integer", "features": ["dtype=uint8"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (2, 5, 7))
    return (x,)


def fn(x):
    return x.clamp(0, 100).to(torch.uint8)
