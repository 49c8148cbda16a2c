import torch

META = {"mode": "forward", "title": "Adam step", "features": ["topology=in_place", "mutation=inplace_method"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    w = torch.randn(5)
    v = torch.zeros(5)
    k = torch.zeros(5)
    return x, w, v, k


def fn(x, w, v, k):
    v.lerp_(x, 0.1)
    k.mul_(0.99).addcmul_(x, x, value=0.01)
    s = k.sqrt().add_(1e-8)
    w.addcdiv_(v, s, value=-0.01)
    return w.clone()
