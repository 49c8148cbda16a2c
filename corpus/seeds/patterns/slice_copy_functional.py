import torch

META = {"mode": "forward", "title": "slice_copy and other copying views", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return torch.ops.aten.slice_copy(x, 0, 1, 3, 2).reciprocal()
