import torch

META = {"mode": "backward", "title": "gradient of an expanded bias", "features": ["mode=backward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 5, requires_grad=True)
    y = torch.randn(5, requires_grad=True)
    return x, y


def fn(x, y):
    return torch.tanh(x * y.expand(4, 5))
