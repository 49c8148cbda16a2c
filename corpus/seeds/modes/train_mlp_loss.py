import torch

META = {"mode": "train", "title": "a small network and its cross entropy", "features": ["mode=train"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    k = torch.randint(0, 3, (6,))
    m = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    return x, k, m


def fn(x, k, m):
    return torch.nn.functional.cross_entropy(m(x), k)
