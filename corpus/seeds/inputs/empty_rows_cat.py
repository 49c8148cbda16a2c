import torch

META = {
    "mode": "forward",
    "title": "concatenation with a tensor of no rows, then a sum",
    "features": ["boundary=zero_size", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(0, 4)
    y = torch.randn(3, 4)
    return x, y


def fn(x, y):
    return torch.cat((x, y)).sum(0), x.sum(0)
