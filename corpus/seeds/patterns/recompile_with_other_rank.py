import torch

META = {
    "mode": "forward",
    "title": "second call after the batch size changed",
    "features": ["config=compile_dynamic"],
    "compile": {"dynamic": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(8)
    return (x,)


def fn(x):
    return torch.diff(x, dim=0).sum() + x.shape[0]
