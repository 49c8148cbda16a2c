import torch

META = {
    "mode": "forward",
    "title": "generator consumed in two places",
    "features": ["python=generator", "control=for_loop", "python=closure"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 4, 5)
    return (x,)


def fn(x):
    def steps(p):
        for i in range(4):
            p = p * 2
            yield p + i

    s = steps(x)
    t = next(s)
    return sum(s) - t
