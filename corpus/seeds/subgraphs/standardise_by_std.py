import torch

META = {
    "mode": "forward",
    "title": "values standardised by mean and deviation",
    "features": ["boundary=keepdim", "boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    s = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-5)
    return s.clamp(-3, 3)
