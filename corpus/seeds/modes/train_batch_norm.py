import torch

META = {
    "mode": "train",
    "title": "a training step through batch norm: buffers, gradients",
    "features": ["mode=train"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 3, 6, 6)
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.ReLU())
    return x, m


def fn(x, m):
    return m(x)
