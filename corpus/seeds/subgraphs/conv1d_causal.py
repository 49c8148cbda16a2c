import torch

META = {
    "mode": "forward",
    "title": "causal one-dimensional convolution with gate",
    "features": ["boundary=dilation"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    w = torch.randn(4, 3, 2)
    return x, w


def fn(x, w):
    s = torch.nn.functional.conv1d(torch.nn.functional.pad(x, (2, 0)), w, dilation=2)
    t, u = s.chunk(2, 1)
    return torch.tanh(t) * torch.sigmoid(u)
