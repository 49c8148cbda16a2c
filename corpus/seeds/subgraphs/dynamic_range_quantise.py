import torch

META = {
    "mode": "forward",
    "title": "quantisation with a range taken from the data",
    "features": ["dtype=uint8"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    return (x,)


def fn(x):
    s = (x.amax() - x.amin()).clamp(min=1e-3) / 255
    t = ((x - x.amin()) / s).round().clamp(0, 255).to(torch.uint8)
    return t.float() * s + x.amin()
