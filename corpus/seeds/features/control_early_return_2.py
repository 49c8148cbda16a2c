import torch

META = {
    "mode": "forward",
    "title": "a return inside a branch",
    "features": ["control=early_return", "control=if_data", "python=closure"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    y = torch.randn(3, 4)
    return x, y


def fn(x, y):
    def choose(p, q):
        if p.sum() > q.sum():
            return p
        return q * 2

    return choose(x, y)
