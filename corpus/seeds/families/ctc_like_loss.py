import torch

META = {"mode": "forward", "title": "a smooth loss with reduction by sum", "features": ["boundary=alpha"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 5)
    y = torch.randn(4, 5)
    return x, y


def fn(x, y):
    return torch.nn.functional.smooth_l1_loss(x, y, reduction="sum", beta=0.5)
