import torch

META = {
    "mode": "forward",
    "title": "argmax, sort or topk over a tensor that is not contiguous",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8)
    return (x,)


def fn(x):
    s = x.transpose(0, 1)
    return s.argmax(2)
