import torch

META = {
    "mode": "forward",
    "title": "top-k routing: gates, experts' products weighted and summed",
    "features": ["boundary=negative_dim", "boundary=none_index"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    w = torch.randn(16, 4)
    v = torch.randn(4, 16, 3)
    return x, w, v


def fn(x, w, v):
    s, t = (x @ w).topk(2)
    u = torch.einsum('nm,emd->ned', x, v)
    return (u.gather(1, t[:, :, None].expand(-1, -1, 3)) * s.softmax(-1)[:, :, None]).sum(1)
