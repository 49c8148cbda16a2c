import torch

META = {
    "mode": "forward",
    "title": "writes to a slice",
    "features": ["mutation=setitem", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x.clone()
    s[0] = 1
    return s * 2
