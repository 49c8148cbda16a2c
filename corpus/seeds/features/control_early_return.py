import torch

META = {
    "mode": "forward",
    "title": "a return inside a branch",
    "features": ["control=early_return", "control=if_static", "python=closure"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    def step(p):
        if p.shape[0] > 2:
            return p * 2
        return p + 1

    return step(x)
