import torch

META = {
    "mode": "forward",
    "title": "no buffer reused in place",
    "features": ["config=no_inplace_buffers", "mutation=inplace_method", "topology=in_place"],
    "inductor_config": {"inplace_buffers": False},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    s = x * 2
    s.add_(1)
    return s.cos()
