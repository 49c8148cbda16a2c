import torch

META = {
    "mode": "forward",
    "title": "half precision rounded at every step",
    "features": ["config=emulate_casts"],
    "inductor_config": {"emulate_precision_casts": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return (x.half() * 3).half().float()
