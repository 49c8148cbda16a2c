import torch

META = {"mode": "forward", "title": "a dilation above 1", "features": ["boundary=dilation"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    w = torch.randn(4, 3, 3)
    return x, w


def fn(x, w):
    return torch.nn.functional.conv1d(x, w, padding=2, dilation=2)
