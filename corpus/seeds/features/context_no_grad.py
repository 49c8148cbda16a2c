import torch

META = {
    "mode": "backward",
    "title": "gradients switched off",
    "features": ["context=no_grad", "control=with", "mode=backward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, requires_grad=True)
    return (x,)


def fn(x):
    with torch.no_grad():
        r = x * 2
    return r
