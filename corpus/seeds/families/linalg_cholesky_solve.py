import torch

META = {"mode": "forward", "title": "a positive definite system by Cholesky", "features": ["mode=forward"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    y = torch.randn(4, 2)
    return x, y


def fn(x, y):
    factor = torch.linalg.cholesky(x @ x.t() + torch.eye(4))
    return torch.cholesky_solve(y, factor)
