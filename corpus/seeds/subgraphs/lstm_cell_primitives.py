import torch

META = {"mode": "forward", "title": "LSTM cell from four chunks", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    w = torch.randn(16, 8)
    v = torch.zeros(2, 2)
    return x, w, v


def fn(x, w, v):
    s = (x @ w).chunk(4, 1)
    t = torch.sigmoid(s[0]) * v + torch.sigmoid(s[1]) * torch.tanh(s[2])
    return torch.sigmoid(s[3]) * torch.tanh(t)
