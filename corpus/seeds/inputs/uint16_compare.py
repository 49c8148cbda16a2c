import torch

META = {
    "mode": "forward",
    "title": "comparison and widening of uint16",
    "features": ["dtype=int32", "dtype=int64", "dtype=wide_unsigned"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(0, 60000, (12,)).to(torch.uint16)
    return (x,)


def fn(x):
    return x.to(torch.int32) - 7, x.to(torch.int64) > 30000
