import torch

META = {"mode": "eval", "title": "a transformer encoder layer in evaluation mode", "features": ["mode=eval"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 8)
    m = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    return x, m


def fn(x, m):
    return m(x)
