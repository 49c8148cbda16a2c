import torch

META = {
    "mode": "forward",
    "title": "list captured by a closure and appended to",
    "features": ["python=closure", "python=list_mutation", "control=early_return"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = []

    def note(p):
        s.append(p * 2)
        return p + 1

    r = note(x) + note(x)
    return r + s[0] * len(s)
