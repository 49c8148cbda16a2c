import torch

META = {
    "mode": "forward",
    "title": "a loop operator (while_loop, map, scan)",
    "features": ["control=loop_operator", "python=lambda"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    k = torch.tensor(0)
    return x, k


def fn(x, k):
    s, r = torch._higher_order_ops.while_loop(lambda p, q: p < 3, lambda p, q: (p + 1, q * 0.5), (k, x))
    return r, s
