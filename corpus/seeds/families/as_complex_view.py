import torch

META = {
    "mode": "forward",
    "title": "pairs of reals viewed as complex, multiplied and viewed back",
    "features": ["mode=forward"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5, 4, 2)
    return (x,)


def fn(x):
    return torch.view_as_real(torch.view_as_complex(x) * 1j)
