import torch

META = {
    "mode": "forward",
    "title": "batched product written into a transposed result",
    "features": ["mutation=out_argument"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4)
    y = torch.randn(2, 4, 5)
    return x, y


def fn(x, y):
    out = torch.empty(2, 5, 3).transpose(1, 2)
    torch.bmm(x, y, out=out)
    return out + 0
