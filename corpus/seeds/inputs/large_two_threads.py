import torch

META = {
    "mode": "forward",
    "title": "a parallel reduction of more than 4096 elements",
    "features": ["config=threads2", "boundary=negative_dim"],
    "inductor_config": {"cpp.threads": 2},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(64, 130)
    return (x,)


def fn(x):
    return (x.sin() * x).sum(-1)
