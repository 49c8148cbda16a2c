import torch

META = {
    "mode": "forward",
    "title": "adaptive pool to a size that does not divide the input",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 2, 9, 8)
    return (x,)


def fn(x):
    return torch.nn.functional.adaptive_avg_pool2d(x, (3, 5)), torch.nn.functional.adaptive_max_pool2d(x, (5, 3))
