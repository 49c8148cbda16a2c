import torch

META = {
    "mode": "forward",
    "title": "data-dependent shapes captured into the graph",
    "features": ["config=capture_dynamic_shapes"],
    "dynamo_config": {"capture_dynamic_output_shape_ops": True},
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(17)
    return (x,)


def fn(x):
    return x.nonzero()
