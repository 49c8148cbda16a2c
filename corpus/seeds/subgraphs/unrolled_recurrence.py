import torch

META = {
    "mode": "forward",
    "title": "recurrence unrolled over rows by a Python loop",
    "features": ["control=for_loop", "python=list_mutation"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s, t = [], torch.zeros(16)
    for p in x.unbind(0):
        t = t * 0.9 + p
        s.append(t)
    return torch.stack(s)
