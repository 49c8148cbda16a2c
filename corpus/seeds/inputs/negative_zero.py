import torch

META = {
    "mode": "forward",
    "title": "signs of zeros through products and divisions",
    "features": ["mode=forward"],
}


def build_inputs():
    x = torch.tensor([0.0, -0.0, 1.0, -1.0])
    return (x,)


def fn(x):
    return torch.signbit(x * -1), torch.copysign(torch.ones(4), x)
