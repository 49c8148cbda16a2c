import torch

META = {
    "mode": "forward",
    "title": "RMSprop step, centred",
    "features": ["topology=in_place", "mutation=inplace_method"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    v = torch.ones(3, 4, 5)
    k = torch.zeros(3, 4, 5)
    return x, v, k


def fn(x, v, k):
    v.mul_(0.9).addcmul_(x, x, value=0.1)
    k.lerp_(x, 0.1)
    return x / (v - k * k).clamp(min=1e-6).sqrt()
