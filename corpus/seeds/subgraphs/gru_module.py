import torch

META = {
    "mode": "forward",
    "title": "GRU layer as a module, the last step taken",
    "features": ["boundary=negative_index"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    m = torch.nn.GRU(5, 3, batch_first=True)
    return x, m


def fn(x, m):
    s, t = m(x)
    return s[:, -1] + t[0]
