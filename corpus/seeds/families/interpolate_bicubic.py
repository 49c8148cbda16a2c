import torch

META = {"mode": "forward", "title": "an image enlarged bicubically", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 5, 4)
    return (x,)


def fn(x):
    return torch.nn.functional.interpolate(x, scale_factor=2, mode="bicubic", align_corners=False)
