import torch

META = {
    "mode": "forward",
    "title": "branch that scatters into a strided slice",
    "features": ["control=cond", "boundary=slice_step", "python=lambda"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    k = torch.tensor([0, 1])
    return x, k


def fn(x, k):
    return torch.cond(x.sum() > 0, lambda p: p[::2].index_add(0, k, p[:2]), lambda p: p[::2] * 2, (x,))
