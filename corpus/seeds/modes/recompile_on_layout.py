import torch

META = {
    "mode": "forward",
    "title": "a second call with a transposed input",
    "features": ["context=second_call", "mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 6)
    return (x,)


def build_inputs2():
    torch.manual_seed(1)
    x = torch.randn(6, 4).t()
    return (x,)


def fn(x):
    return torch.relu(x).sum(0)
