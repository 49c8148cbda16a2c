import torch

META = {
    "mode": "forward",
    "title": "an integer at the edge of int64",
    "features": ["boundary=int64_extreme", "boundary=slice_bound"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    return x[1:9223372036854775807]
