import torch

META = {"mode": "forward", "title": "inference mode", "features": ["context=inference_mode", "control=with"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    with torch.inference_mode():
        r = x + 1
    return r
