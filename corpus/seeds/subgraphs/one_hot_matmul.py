import torch

META = {"mode": "forward", "title": "one-hot encoding times a table", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    k = torch.randint(0, 4, (6,))
    return x, k


def fn(x, k):
    s = torch.nn.functional.one_hot(k, 4).float()
    return s @ x
