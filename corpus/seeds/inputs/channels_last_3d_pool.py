import torch

META = {"mode": "forward", "title": "average pooling of a channels-last volume", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(1, 2, 4, 6, 6).to(memory_format=torch.channels_last_3d)
    return (x,)


def fn(x):
    return torch.nn.functional.avg_pool3d(x, 2)
