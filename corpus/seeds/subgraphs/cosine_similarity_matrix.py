import torch

META = {"mode": "forward", "title": "pairwise cosine similarities", "features": ["boundary=negative_dim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = torch.nn.functional.normalize(x, dim=-1)
    return s @ s.t()
