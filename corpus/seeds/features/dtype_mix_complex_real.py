import torch

META = {
    "mode": "forward",
    "title": "complex and real tensors in one operator",
    "features": ["dtype=complex64"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    w = torch.randn(2, 16, dtype=torch.complex64)
    return x, w


def fn(x, w):
    return x * w
