import torch

META = {
    "mode": "forward",
    "title": "a generator",
    "features": ["python=generator", "control=for_loop", "python=closure"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(5)
    return (x,)


def fn(x):
    def powers(p):
        for i in range(1, 4):
            yield p**i

    return torch.stack(list(powers(x)))
