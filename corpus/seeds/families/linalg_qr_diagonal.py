import torch

META = {
    "mode": "forward",
    "title": "QR and the product of the diagonal",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 4, 3)
    return (x,)


def fn(x):
    q, r = torch.linalg.qr(x)
    return (q @ r - x).abs().amax(), r.diagonal(dim1=-2, dim2=-1).prod(-1).abs()
