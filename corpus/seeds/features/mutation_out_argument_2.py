import torch

META = {
    "mode": "forward",
    "title": "an out= argument",
    "features": ["mutation=out_argument", "python=detach"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    r = torch.zeros(3, 4)
    torch.mul(x.detach(), 2, out=r)
    return r
