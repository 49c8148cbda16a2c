import torch

META = {
    "mode": "forward",
    "title": "random integers over wide ranges or narrow dtypes",
    "features": ["boundary=int64_extreme", "context=random"],
    "random": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return x + torch.randint(-5, 9223372036854775807, (3, 4)).clamp(0, 9)
