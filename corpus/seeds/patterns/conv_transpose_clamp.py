import torch

META = {
    "mode": "forward",
    "title": "transposed convolution followed by a clamp with infinite bounds",
    "features": ["boundary=float_extreme", "context=no_grad"],
    "no_grad": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    w = torch.randn(4, 2, 3, 3)
    return x, w


def fn(x, w):
    return torch.nn.functional.conv_transpose2d(x, w).clamp(min=float("-inf"), max=2.0)
