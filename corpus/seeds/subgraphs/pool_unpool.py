import torch

META = {"mode": "forward", "title": "max pool with indices, then unpooling", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    return (x,)


def fn(x):
    s, t = torch.nn.functional.max_pool2d(x[..., :2, :4], 2, return_indices=True)
    return torch.nn.functional.max_unpool2d(s, t, 2)
