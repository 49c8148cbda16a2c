import torch

META = {
    "mode": "forward",
    "title": "query, key and value from one linear layer, chunked",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    w = torch.randn(12, 7)
    return x, w


def fn(x, w):
    s = torch.nn.functional.linear(x, w).chunk(3, -1)
    return (s[0] @ s[1].mT).softmax(-1) @ s[2]
