import torch

META = {
    "mode": "forward",
    "title": "pooling with ceil_mode",
    "features": ["boundary=ceil_mode", "boundary=stride"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    return (x,)


def fn(x):
    return torch.nn.functional.avg_pool2d(x, 2, stride=2, ceil_mode=True)
