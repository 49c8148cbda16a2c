import torch

META = {"mode": "forward", "title": "linear attention by a feature map", "features": ["boundary=keepdim"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    s = torch.nn.functional.elu(x) + 1
    t = s.mT @ x
    return (s @ t) / (s @ s.sum(1, keepdim=True).mT + 1e-6)
