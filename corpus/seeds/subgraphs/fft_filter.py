import torch

META = {"mode": "forward", "title": "filter in the frequency domain", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = torch.fft.rfft(x, n=8)
    t = torch.arange(5) < 3
    return torch.fft.irfft(s * t, n=8)
