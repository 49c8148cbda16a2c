import torch

META = {
    "mode": "forward",
    "title": "a long chain cut into small kernels",
    "features": ["config=small_fusion"],
    "inductor_config": {"max_fusion_size": 2},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return x.sin().cos().tanh().exp().abs()
