import torch

META = {
    "mode": "forward",
    "title": "sort, change, undo by the inverse permutation",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    s, t = x.sort()
    return s.cumsum(0)[t.argsort()]
