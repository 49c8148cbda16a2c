import torch

META = {
    "mode": "backward",
    "title": "gradient of slice_scatter followed by a sum",
    "features": ["mode=backward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5, requires_grad=True)
    w = torch.randn(6, 2, requires_grad=True)
    return x, w


def fn(x, w):
    return torch.slice_scatter(x, w, 1, 0, 2).sum(1)
