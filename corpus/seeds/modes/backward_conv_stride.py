import torch

META = {
    "mode": "backward",
    "title": "gradients of a strided, dilated convolution",
    "features": ["mode=backward", "boundary=dilation", "boundary=stride"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 9, requires_grad=True)
    w = torch.randn(3, 2, 3, requires_grad=True)
    return x, w


def fn(x, w):
    return torch.nn.functional.conv1d(x, w, stride=2, dilation=2)
