import torch

META = {"mode": "forward", "title": "a stride above 1", "features": ["boundary=stride"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    w = torch.randn(4, 5, 3)
    return x, w


def fn(x, w):
    return torch.nn.functional.conv1d(x, w, stride=2, padding=1)
