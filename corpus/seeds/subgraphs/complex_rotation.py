import torch

META = {
    "mode": "forward",
    "title": "rotation by complex product on a real tensor",
    "features": ["boundary=negative_dim", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    s = torch.view_as_complex(torch.stack((x, x + 1), -1))
    t = torch.polar(torch.ones_like(x), x)
    return torch.view_as_real(s * t).flatten(-2)
