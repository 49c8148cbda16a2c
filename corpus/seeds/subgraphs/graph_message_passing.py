import torch

META = {
    "mode": "forward",
    "title": "messages gathered at edges and reduced at nodes",
    "features": ["boundary=none_index"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(6, 5)
    k = torch.randint(0, 6, (8,))
    v = torch.randint(0, 6, (8,))
    return x, k, v


def fn(x, k, v):
    s = torch.relu(x.index_select(0, k))
    return torch.zeros_like(x).scatter_reduce(0, v[:, None].expand(-1, 5), s, 'amax', include_self=False)
