import torch

META = {
    "mode": "forward",
    "title": "RMS norm in bfloat16 with a float32 mean",
    "features": ["boundary=keepdim", "boundary=negative_dim", "dtype=bfloat16"],
}


def build_inputs():
    torch.manual_seed(0)
    x = torch.randn(3, 16, dtype=torch.bfloat16)
    return (x,)


def fn(x):
    scale = x.float().pow(2).mean(-1, keepdim=True).add(1e-6).rsqrt()
    return x * scale.to(torch.bfloat16)
