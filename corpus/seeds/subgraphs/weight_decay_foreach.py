import torch

META = {"mode": "forward", "title": "foreach update of a list of tensors", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    w = torch.randn(5)
    return x, w


def fn(x, w):
    s = torch._foreach_mul([x, w], 0.5)
    t = torch._foreach_add(s, [x, w])
    return t[0], t[1]
