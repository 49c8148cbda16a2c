import torch

META = {
    "mode": "forward",
    "title": "the layout of the result left to the compiler",
    "features": ["config=free_output_stride"],
    "inductor_config": {"keep_output_stride": False},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return x.t() + 1
