import torch

META = {"mode": "forward", "title": "fake quantisation per channel", "features": ["dtype=int32"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    w = torch.rand(4) + 0.1
    k = torch.zeros(4, dtype=torch.int32)
    return x, w, k


def fn(x, w, k):
    return torch.fake_quantize_per_channel_affine(x, w, k, 0, -128, 127)
