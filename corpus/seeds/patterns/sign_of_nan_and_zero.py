import torch

META = {
    "mode": "forward",
    "title": "sign, sgn or heaviside of NaN and zeros",
    "features": ["boundary=float_extreme", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    w = torch.tensor([float("nan"), -0.0])
    return x, w


def fn(x, w):
    s = torch.cat((x.flatten(), w))
    return torch.sign(s), torch.signbit(s)
