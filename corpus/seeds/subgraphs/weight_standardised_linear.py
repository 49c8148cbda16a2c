import torch

META = {"mode": "forward", "title": "linear layer with a normalised weight", "features": ["boundary=keepdim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    w = torch.randn(5, 16)
    return x, w


def fn(x, w):
    s = w / w.norm(dim=1, keepdim=True)
    return torch.nn.functional.linear(x, s)
