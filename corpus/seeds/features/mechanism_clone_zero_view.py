import torch

META = {
    "mode": "forward",
    "title": "a clone that is zeroed in place",
    "features": ["mutation=inplace_method", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    s = x.clone()
    s.zero_()
    return s[0] + x
