import torch

META = {
    "mode": "forward",
    "title": "batched product with a scaled batch added",
    "features": ["boundary=alpha"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    s = x.bmm(x.mT)
    return torch.baddbmm(s, x, x.mT, beta=0.5, alpha=2)
