import torch

META = {"mode": "forward", "title": "a closure", "features": ["python=closure", "control=early_return"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    def step(p):
        return p * x

    return step(torch.sin(x))
