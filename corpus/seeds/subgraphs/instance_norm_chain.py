import torch

META = {
    "mode": "forward",
    "title": "instance norm followed by an affine map and activation",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    w = torch.randn(1, 4, 1, 1)
    return x, w


def fn(x, w):
    s = torch.nn.functional.instance_norm(x)
    return torch.relu(s * w + 0.1)
