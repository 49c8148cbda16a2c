import torch

META = {
    "mode": "forward",
    "title": "convolution and ReLU on a channels-last image",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    w = torch.randn(4, 3, 3, 3)
    return x, w


def fn(x, w):
    return torch.relu(torch.nn.functional.conv2d(x, w, padding=1))
