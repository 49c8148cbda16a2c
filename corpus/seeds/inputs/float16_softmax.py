import torch

META = {
    "mode": "forward",
    "title": "softmax of float16 scores",
    "features": ["boundary=negative_dim", "dtype=float16"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8, dtype=torch.float16)
    return (x,)


def fn(x):
    return (x * 0.25).softmax(-1)
