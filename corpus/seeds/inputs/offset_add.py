import torch

META = {
    "mode": "forward",
    "title": "a tensor that starts inside its storage, one short of a vector",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(16)[1:]
    y = torch.randn(15)
    return x, y


def fn(x, y):
    return x + y * 3
