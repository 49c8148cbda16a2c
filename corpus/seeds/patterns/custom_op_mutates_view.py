import torch


@torch.library.custom_op("patterns::halve", mutates_args={"x"})
def halve(x: torch.Tensor) -> None:
    x.mul_(0.5)


META = {
    "mode": "forward",
    "title": "custom operator that writes to its argument",
    "features": ["python=custom_op", "mutation=inplace_method", "topology=in_place"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(4, 7)
    return (x,)


def fn(x):
    s = x.clone()
    halve(s[0])
    return s + 1
