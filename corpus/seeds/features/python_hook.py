import torch


def hooked():
    linear = torch.nn.Linear(5, 4)
    linear.register_forward_hook(lambda module, args, out: out * 2)
    return linear


META = {"mode": "backward", "title": "hooks", "features": ["python=hook", "mode=backward", "python=lambda"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5, requires_grad=True)
    m = hooked()
    return x, m


def fn(x, m):
    return m(x)
