import torch

META = {"mode": "forward", "title": "LSTM layer as a module", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    m = torch.nn.LSTM(5, 3, batch_first=True)
    return x, m


def fn(x, m):
    r, (s, t) = m(x)
    return r, s, t
