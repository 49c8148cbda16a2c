import torch

META = {"mode": "forward", "title": "one optimiser step for a list of tensors", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3)
    y = torch.randn(2, 2)
    return x, y


def fn(x, y):
    x, y = torch._foreach_mul([x, y], 0.9)
    return torch._foreach_add([x, y], 1.0)
