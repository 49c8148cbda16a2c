import torch

META = {
    "mode": "backward",
    "title": "gradient of a multi-dimensional Fourier transform",
    "features": ["mode=backward", "boundary=tuple_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7, requires_grad=True)
    return (x,)


def fn(x):
    return torch.fft.rfftn(x, dim=(1, 2)).abs()
