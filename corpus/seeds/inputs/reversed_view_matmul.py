import torch

META = {
    "mode": "forward",
    "title": "product of a flipped and a transposed matrix",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 6)
    y = torch.randn(5, 6)
    return x, y


def fn(x, y):
    return x.flip(0) @ y.t()
