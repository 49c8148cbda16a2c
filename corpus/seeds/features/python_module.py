import torch


class Scale(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(5))

    def forward(self, x):
        return torch.tanh(x) * self.weight


META = {"mode": "forward", "title": "an nn.Module class", "features": ["python=module"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    m = Scale()
    return x, m


def fn(x, m):
    return m(x)
