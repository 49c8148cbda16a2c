import torch

META = {
    "mode": "forward",
    "title": "determinant and inverse in double precision",
    "features": ["dtype=float64"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 4, dtype=torch.float64)
    return (x,)


def fn(x):
    return torch.linalg.det(x), torch.linalg.inv(x + 4 * torch.eye(4, dtype=torch.float64))
