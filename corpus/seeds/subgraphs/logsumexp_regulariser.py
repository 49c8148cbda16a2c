import torch

META = {
    "mode": "forward",
    "title": "cross entropy with a penalty on the log-partition",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    k = torch.randint(0, 16, (2,))
    return x, k


def fn(x, k):
    s = x / 2.0
    return torch.nn.functional.cross_entropy(s, k) + 1e-2 * s.logsumexp(-1).pow(2).mean()
