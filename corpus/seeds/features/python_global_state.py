import torch


calls = 0


def counted(x):
    global calls
    calls = calls + 1
    return torch.sin(x) * 2


META = {"mode": "forward", "title": "global or nonlocal state", "features": ["python=global_state"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 5, 7)
    return (x,)


def fn(x):
    return counted(x)
