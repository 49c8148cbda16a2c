import torch

META = {
    "mode": "backward",
    "title": "gradient of abs and angle of a transposed complex tensor",
    "features": ["mode=backward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, requires_grad=True)
    return (x,)


def fn(x):
    s = torch.complex(x, x + 1).t()
    return s.abs() + s.angle()
