import torch

META = {
    "mode": "forward",
    "title": "narrow integer widened, then reinterpreted as half precision",
    "features": ["dtype=bfloat16", "dtype=int16", "dtype=int8"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (2, 5, 7))
    return (x,)


def fn(x):
    return x.to(torch.int8).to(torch.int16).view(torch.bfloat16).isnan()
