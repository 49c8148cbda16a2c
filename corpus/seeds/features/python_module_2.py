import torch


class Block(torch.nn.Module):
    def forward(self, x):
        y = torch.sigmoid(x)
        return x * y


META = {"mode": "forward", "title": "an nn.Module class", "features": ["python=module"]}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    m = Block()
    return x, m


def fn(x, m):
    return m(x)
