import torch

META = {
    "mode": "forward",
    "title": "attention without the pattern matcher",
    "features": ["config=no_pattern_matcher", "boundary=negative_dim"],
    "inductor_config": {"pattern_matcher": False},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 19)
    return (x,)


def fn(x):
    return (x @ x.mT).softmax(-1) @ x
