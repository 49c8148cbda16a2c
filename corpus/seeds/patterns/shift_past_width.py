import torch

META = {"mode": "forward", "title": "shift by an amount near or past the width", "features": ["dtype=int32"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (2, 3, 8))
    return (x,)


def fn(x):
    s = x.to(torch.int32)
    return s >> 31, s << 4, torch.bitwise_right_shift(s, 30)
