import torch

META = {
    "mode": "forward",
    "title": "a Python loop that must stay one graph",
    "features": ["config=fullgraph", "control=for_loop"],
    "compile": {"fullgraph": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 4)
    return (x,)


def fn(x):
    for i in range(3):
        x = torch.tanh(x @ x) + i
    return x
