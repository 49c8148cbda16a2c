import torch

META = {
    "mode": "forward",
    "title": "casts emulated exactly in a half precision chain",
    "features": ["config=emulate_casts", "boundary=negative_dim", "dtype=float16"],
    "inductor_config": {"emulate_precision_casts": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, dtype=torch.float16)
    return (x,)


def fn(x):
    return torch.sigmoid(x * x + 1).softmax(-1)
