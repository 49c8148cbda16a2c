import torch

META = {
    "mode": "forward",
    "title": "lerp, addcmul or addcdiv with number weights",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    y = torch.randn(17)
    return x, y


def fn(x, y):
    return torch.lerp(x, y, 0.7), torch.addcmul(x, y, y, value=0.5)
