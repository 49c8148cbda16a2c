import torch

META = {
    "mode": "forward",
    "title": "Gumbel noise added to logits, softmax, argmax",
    "features": ["boundary=negative_dim", "context=random"],
    "random": True,
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(2, 16)
    return (x,)


def fn(x):
    s = -torch.log(-torch.log(torch.rand(2, 16) * 0.98 + 0.01))
    t = (x + s).softmax(-1)
    return t, t.argmax(-1)
