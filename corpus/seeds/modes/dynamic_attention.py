import torch

META = {
    "mode": "dynamic",
    "title": "attention over a sequence length that changes",
    "features": ["context=second_call", "mode=dynamic", "boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 8)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(2, 7, 8)
    return (x,)


def fn(x):
    return (x @ x.mT / 8**0.5).softmax(-1) @ x
