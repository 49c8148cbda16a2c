import torch

META = {
    "mode": "forward",
    "title": "moments over the outer dimension of a transposed tensor",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    s = x.t() * 2
    return s.var(-1) + torch.nn.functional.layer_norm(s, (3,)).sum(-1)
