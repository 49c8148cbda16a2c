import torch

META = {
    "mode": "forward",
    "title": "large reduction by several threads",
    "features": ["config=threads2"],
    "inductor_config": {"cpp.threads": 2},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    s = x.repeat(2000)
    return s.amax(), s.sum(), s.argmin()
