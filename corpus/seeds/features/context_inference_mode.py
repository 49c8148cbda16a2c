import torch

META = {"mode": "forward", "title": "inference mode", "features": ["context=inference_mode", "control=with"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    with torch.inference_mode():
        s = torch.sin(x)
    return s * 2
