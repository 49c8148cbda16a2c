import torch

META = {
    "mode": "forward",
    "title": "a second call that takes the other branch",
    "features": ["context=second_call", "control=if_data", "control=early_return"],
}


def build_inputs():
    x = torch.ones(4)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = -torch.ones(4)
    return (x,)


def fn(x):
    if x.sum() > 0:
        return x * 2
    return x - 1
