import torch

META = {"mode": "forward", "title": "a grouped transposed convolution", "features": ["boundary=stride"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 4, 5)
    w = torch.randn(4, 3, 3)
    return x, w


def fn(x, w):
    return torch.nn.functional.conv_transpose1d(x, w, stride=2, groups=2, output_padding=1)
