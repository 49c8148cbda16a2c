import torch

META = {
    "mode": "forward",
    "title": "a value read with .item() and written back",
    "features": ["mechanism=item_fill", "mutation=inplace_method", "python=item", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    r = torch.zeros_like(x)
    r.fill_(x.sum().item())
    return r
