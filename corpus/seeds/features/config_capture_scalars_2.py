import torch

META = {
    "mode": "forward",
    "title": ".item() captured into the graph",
    "features": ["config=capture_scalars", "python=item"],
    "dynamo_config": {"capture_scalar_outputs": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randint(-9, 10, (8,))
    return (x,)


def fn(x):
    s = x.max().item()
    return x * s
