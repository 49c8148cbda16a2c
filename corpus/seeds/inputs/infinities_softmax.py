import torch

META = {
    "mode": "forward",
    "title": "softmax of a row with infinities masked out",
    "features": ["boundary=float_extreme", "boundary=negative_dim"],
}


def build_inputs():
    x = torch.tensor([[0.5, float("-inf"), 2.0], [float("-inf"), 1.0, 1.0]])
    return (x,)


def fn(x):
    return x.softmax(-1), x.log_softmax(-1)
