import torch

META = {
    "mode": "forward",
    "title": "writes under a mask",
    "features": ["mutation=masked_setitem", "boundary=boolean_mask", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x.clone()
    s[s > 0] = 0
    return s * 2
