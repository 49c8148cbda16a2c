import torch

META = {
    "mode": "forward",
    "title": "Euclidean norm of huge or tiny values",
    "features": ["boundary=negative_dim"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    return torch.linalg.vector_norm(x * 1e18, dim=-1), torch.nn.functional.normalize(x * 1e-20, dim=-1)
