import torch

META = {"mode": "forward", "title": "a cast to a narrower integer", "features": ["dtype=int8"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (17,))
    return (x,)


def fn(x):
    return x.clamp(-100, 100).to(torch.int8)
