import torch

META = {
    "mode": "forward",
    "title": "overlap of boxes: maxima, minima, clamped products",
    "features": [
        "boundary=negative_dim", "boundary=none_index", "boundary=tuple_dim", "boundary=zero_argument",
    ],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = torch.cat((x[:, :2], x[:, :2].abs() + x[:, :2] + 1), 1)
    t = torch.maximum(s[:, None, :2], s[None, :, :2])
    u = torch.minimum(s[:, None, 2:], s[None, :, 2:])
    return (u - t).clamp(min=0).prod(-1)
