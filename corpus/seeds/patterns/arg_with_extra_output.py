import torch

META = {
    "mode": "forward",
    "title": "argmax whose input is returned as well",
    "features": ["topology=multi_result", "boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    s = torch.atan(x) * torch.tan(x)
    r = s.argmax(-1)
    t = s * 1.0
    return r, t
