import torch

META = {
    "mode": "forward",
    "title": "256-bit vectors for a row with a tail",
    "features": ["config=vector256", "boundary=negative_dim"],
    "inductor_config": {"cpp.simdlen": 256},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return x.exp().sum(-1)
