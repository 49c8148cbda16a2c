import torch

META = {"mode": "backward", "title": "subgradient at a kink", "features": ["mode=backward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8, requires_grad=True)
    w = torch.zeros((8,), requires_grad=True)
    return x, w


def fn(x, w):
    return torch.nn.functional.hardtanh(w * x, 0.0, 1.0) + torch.relu(w)
