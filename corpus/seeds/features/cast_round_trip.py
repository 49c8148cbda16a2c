import torch

META = {
    "mode": "forward",
    "title": "a cast of a cast (down and up again)",
    "features": ["dtype=float16", "dtype=float64"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, dtype=torch.float64)
    return (x,)


def fn(x):
    return x.to(torch.float16).to(torch.float32)
