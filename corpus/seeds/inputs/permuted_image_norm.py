import torch

META = {
    "mode": "forward",
    "title": "layer norm of an image with its channels moved last",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 3, 4, 5).permute(0, 2, 3, 1)
    return (x,)


def fn(x):
    return torch.nn.functional.layer_norm(x, (3,))
