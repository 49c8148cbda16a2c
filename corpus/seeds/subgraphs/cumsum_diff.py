import torch

META = {
    "mode": "forward",
    "title": "cumulative sum and its difference",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    s = x.cumsum(-1)
    return torch.diff(s, dim=-1, prepend=torch.zeros_like(s[..., :1]))
