import torch

META = {
    "mode": "forward",
    "title": "readers of one input fused aggressively",
    "features": ["config=aggressive_fusion"],
    "inductor_config": {"aggressive_fusion": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return x.sum(0), x.sin(), x + 1
