import torch

META = {
    "mode": "forward",
    "title": "residual, dropout with probability zero, layer norm",
    "features": ["boundary=zero_argument"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = torch.nn.functional.dropout(torch.tanh(x), p=0.0)
    return torch.nn.functional.layer_norm(x + s, (16,))
