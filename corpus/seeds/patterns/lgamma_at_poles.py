import torch

META = {
    "mode": "forward",
    "title": "log-gamma, erfinv and logit at their poles",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    return torch.lgamma(x.round()), torch.erfinv(x.clamp(-1, 1)), torch.logit(x.clamp(0, 1))
