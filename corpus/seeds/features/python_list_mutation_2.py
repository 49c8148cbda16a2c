import torch

META = {"mode": "forward", "title": "a list that grows", "features": ["python=list_mutation"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    y = torch.randn(2, 3, 8)
    return x, y


def fn(x, y):
    s = [x]
    s.append(x.flip(0))
    s.extend([y])
    return torch.cat(s)
