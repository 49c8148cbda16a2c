import torch

META = {"mode": "forward", "title": "distinct values and how often each occurs", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(0, 4, (20,))
    return (x,)


def fn(x):
    return torch.unique(x, return_counts=True)
