import torch

META = {
    "mode": "forward",
    "title": "integer at the limit of int64 in a view",
    "features": ["boundary=int64_extreme", "boundary=slice_bound"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    return x.narrow(0, 0, 1)[:9223372036854775807] + x.unsqueeze(0)[..., :9223372036854775807].sum()
