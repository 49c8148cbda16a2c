import torch

META = {
    "mode": "forward",
    "title": "transposes and a sum of a tensor of rank six",
    "features": ["boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 1, 3, 2, 1, 4)
    return (x,)


def fn(x):
    return x.transpose(0, 5).sum((1, 3))
