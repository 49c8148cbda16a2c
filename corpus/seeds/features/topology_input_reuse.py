import torch

META = {"mode": "forward", "title": "one input read by several operators", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = x * 2
    return torch.sin(x) + s
