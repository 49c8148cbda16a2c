import torch

META = {
    "mode": "forward",
    "title": "rotary position embedding",
    "features": ["boundary=negative_dim", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    s = torch.outer(torch.arange(6).float(), torch.ones(5) * 0.1)
    t = torch.cat((-x[:, 5 // 2 :], x[:, : 5 // 2]), -1)
    return x * s.cos() + t * s.sin()
