import torch

META = {
    "mode": "forward",
    "title": "attention with a causal mask by masked_fill",
    "features": ["boundary=float_extreme", "boundary=negative_dim", "boundary=negative_index", "dtype=bool"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 6)
    return (x,)


def fn(x):
    s = x @ x.transpose(-2, -1)
    t = torch.ones(s.shape[-2], s.shape[-1], dtype=torch.bool).tril()
    return s.masked_fill(~t, float("-inf")).softmax(-1) @ x
