import torch

META = {
    "mode": "forward",
    "title": "an out= argument",
    "features": ["mutation=out_argument", "python=detach"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    y = torch.randn(4, 7)
    return x, y


def fn(x, y):
    r = torch.zeros(4, 7)
    torch.add(x.detach(), y.detach(), out=r)
    return r
