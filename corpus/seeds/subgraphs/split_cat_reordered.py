import torch

META = {
    "mode": "forward",
    "title": "split, pieces changed, concatenated in another order",
    "features": ["boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s, t = torch.split(torch.cat((x, x * 2), 1), 7, 1)
    return torch.cat((t, torch.relu(s)), 1)
