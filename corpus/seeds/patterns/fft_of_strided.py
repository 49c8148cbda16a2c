import torch

META = {
    "mode": "forward",
    "title": "Fourier transform along another than the last dimension",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    return torch.fft.fft(x, dim=0).abs()
