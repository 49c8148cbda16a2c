import torch

META = {
    "mode": "backward",
    "title": "hooks",
    "features": ["python=hook", "control=if_static", "mode=backward", "python=lambda"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5, requires_grad=True)
    return (x,)


def fn(x):
    r = torch.sin(x)
    if r.requires_grad:
        r.register_hook(lambda p: p * 2)
    return r
