import torch

META = {"mode": "jit_trace", "title": "a module through torch.jit.trace", "features": ["mode=jit_trace"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4)
    return (x,)


def fn(x):
    return torch.nn.functional.silu(x) @ x.t()
