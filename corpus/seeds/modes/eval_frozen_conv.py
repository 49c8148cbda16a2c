import torch

META = {
    "mode": "eval",
    "title": "a frozen convolution with batch norm folded in",
    "features": ["config=freezing", "context=no_grad", "mode=eval"],
    "no_grad": True,
    "inductor_config": {"freezing": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 3, 8, 8)
    m = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4))
    return x, m


def fn(x, m):
    return m(x)
