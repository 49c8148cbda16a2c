import torch

META = {
    "mode": "forward",
    "title": "diffusion step: scaled sum of signal and noise",
    "features": ["context=random"],
    "random": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    k = torch.tensor(2)
    return x, k


def fn(x, k):
    s = torch.cumprod(torch.linspace(0.9, 0.99, 5), 0)[k]
    return s.sqrt() * x + (1 - s).sqrt() * torch.randn(8)
