import torch

META = {
    "mode": "forward",
    "title": "automatic mixed precision",
    "features": ["context=autocast", "control=with", "dtype=bfloat16"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    with torch.autocast("cpu", dtype=torch.bfloat16):
        s = x @ x.t()
    return s + 1
