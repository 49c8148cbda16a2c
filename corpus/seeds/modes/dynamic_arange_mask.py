import torch

META = {
    "mode": "dynamic",
    "title": "a causal mask made of arange and a symbolic size",
    "features": ["context=second_call", "mode=dynamic", "boundary=none_index"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 5)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(9, 9)
    return (x,)


def fn(x):
    k = torch.arange(x.shape[0])
    return x.masked_fill(k[:, None] < k, 0.0)
