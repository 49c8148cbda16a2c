import torch

META = {"mode": "forward", "title": "negative padding", "features": ["boundary=negative_padding"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    return torch.nn.functional.pad(x, (-1, 1))
