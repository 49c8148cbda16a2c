import torch

META = {
    "mode": "forward",
    "title": "a real transform, high frequencies cut, and back",
    "features": ["mutation=setitem", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 16)
    return (x,)


def fn(x):
    s = torch.fft.rfft(x)
    s[:, 4:] = 0
    return torch.fft.irfft(s, n=16)
