import torch

META = {"mode": "eval", "title": "dropout and batch norm in evaluation mode", "features": ["mode=eval"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 5)
    m = torch.nn.Sequential(torch.nn.BatchNorm1d(4), torch.nn.Dropout(0.5))
    return x, m


def fn(x, m):
    return m(x) * 2
