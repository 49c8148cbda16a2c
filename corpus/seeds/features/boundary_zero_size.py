import torch

META = {
    "mode": "forward",
    "title": "a size of zero in a shape argument",
    "features": ["boundary=zero_size", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    return torch.cat((x, x.new_zeros(0, 5)))
