import torch

META = {"mode": "forward", "title": "token and position embeddings added", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    k = torch.randint(0, 4, (3,))
    return x, k


def fn(x, k):
    s = torch.nn.functional.embedding(k, x)
    return s + torch.nn.functional.embedding(torch.arange(3), x)
