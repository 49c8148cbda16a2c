import torch

META = {
    "mode": "forward",
    "title": "group norm by reshaping",
    "features": ["boundary=keepdim", "boundary=zero_argument"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 7, 5)
    return (x,)


def fn(x):
    s = x.reshape(x.shape[0], 1, -1)
    t, u = torch.var_mean(s, -1, correction=0, keepdim=True)
    return ((s - u) / (t + 1e-5).sqrt()).view(3, 4, 7, 5)
