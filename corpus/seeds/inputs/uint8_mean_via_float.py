import torch

META = {
    "mode": "forward",
    "title": "mean of bytes by way of float",
    "features": ["boundary=negative_dim", "dtype=uint8"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(0, 255, (4, 17), dtype=torch.uint8)
    return (x,)


def fn(x):
    return x.float().mean(-1), x.sum(-1)
