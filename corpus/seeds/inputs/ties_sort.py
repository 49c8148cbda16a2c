import torch

META = {"mode": "forward", "title": "a stable sort of a row full of ties", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(0, 3, (4, 20))
    return (x,)


def fn(x):
    return torch.sort(x, dim=1, stable=True)
