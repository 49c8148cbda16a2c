import torch

META = {
    "mode": "forward",
    "title": "special function away from its comfortable range",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    return torch.special.erfcx(x * 3) + torch.special.ndtri(x.sigmoid())
