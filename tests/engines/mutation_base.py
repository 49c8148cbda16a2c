"""Small programs in the engines' style, to be mutated by tests."""

from __future__ import annotations

from fuzzer.program import Program


def program(inputs: str, body: str, meta: str = '{"mode": "forward"}', prelude: str = "import torch") -> Program:
    """``inputs`` lines end with the names returned, as does ``body``; the parameters are the input names."""
    build, body_lines = inputs.strip().splitlines(), body.strip().splitlines()
    params = build[-1].strip()
    text = f"{prelude}\n\nMETA = {meta}\n\n\ndef build_inputs():\n    torch.manual_seed(7)\n"
    text += "".join(f"    {line.strip()}\n" for line in build[:-1])
    text += f"    return {params if ',' in params else f'({params},)'}\n\n\ndef fn({params}):\n"
    text += "".join(f"    {line.rstrip()}\n" for line in body_lines[:-1]) + f"    return {body_lines[-1].strip()}\n"
    return Program.parse(text)


NN = "import torch\nimport torch.nn.functional as F"

PROGRAMS: dict[str, Program] = {
    "alias": program(
        "a = torch.randn(3, 4)\nb = torch.randint(-5, 6, (4, 3), dtype=torch.int64).t()\na, b",
        "c = torch.sin(a)\nd = c.t()\nd.add_(1)\ne = b + 2\nc, d, e",
    ),
    "reduce": program(
        "a = torch.randn(8, 16)\na",
        "b = torch.relu(a)\nc = torch.softmax(b, dim=-1)\nd = c.sum(dim=1, keepdim=True)\ne = c / d\ne",
    ),
    "matmul": program(
        "a = torch.randn(4, 8)\nb = torch.randn(8, 5)\nc = torch.randn(5)\na, b, c",
        "d = a @ b\ne = d + c\nf = F.gelu(e)\nf, d",
        prelude=NN,
    ),
    "convolution": program(
        "x = torch.randn(2, 3, 9, 9)\nw = torch.randn(4, 3, 3, 3)\nx, w",
        "a = F.conv2d(x, w, padding=1)\nb = F.relu(a)\nc = F.max_pool2d(b, 2)\nc",
        prelude=NN,
    ),
    "index": program(
        "x = torch.randn(6, 5)\ni = torch.randint(0, 5, (6, 2))\nx, i",
        "a = torch.gather(x, 1, i)\nb = a.argmax(dim=0)\nc = a.cumsum(dim=0)\nb, c",
    ),
    "backward": program(
        "a = torch.randn(5, 7, requires_grad=True)\nb = torch.randn(5, 7).requires_grad_()\na, b",
        "c = a * b\nd = torch.tanh(c)\ne = d.mean(dim=0)\ne",
        meta='{"mode": "backward"}',
    ),
    "dynamic": program(
        "a = torch.randn(4, 6)\na", "b = a.shape[0] * a\nc = b.transpose(0, 1)\nd = torch.cat((c, c), dim=0)\nd",
        meta='{"mode": "dynamic"}',
    ),
    "loop": program(
        "a = torch.randn(4, 4)\na",
        "b = a.clone()\nfor k in range(2):\n    b = b @ a\nif b.sum() > 0:\n    b = b * 2\nc = b.max(dim=1)\nc[0], b",
    ),
    "bits": program(
        "a = torch.randint(0, 100, (17,), dtype=torch.uint8)\nb = torch.randint(1, 9, (17,), dtype=torch.uint8)\na, b",
        'c = a & b\nd = torch.bitwise_xor(c, b)\ne = d.to(torch.int32)\nf = e // 3\n{"c": c, "f": f}',
    ),
    "nested": program(
        "x = torch.randn(2, 6)\nx",
        "[F.layer_norm(x, (6,), eps=1e-5).sin(), torch.where(x > 0, x, x * 0.5).reshape(3, 4)]",
        prelude=NN,
    ),
    "norm": program(
        "x = torch.rand(3, 5, 7)\nw = torch.ones(7)\nx, w",
        "m = x.mean(dim=-1, keepdim=True)\nv = x.var(dim=-1, keepdim=True, correction=0)\n"
        "y = (x - m) * torch.rsqrt(v + 1e-5)\ny * w",
    ),
    "write": program(
        "x = torch.randn(6, 3)\ny = torch.zeros(6, 3)\nx, y",
        "z = x.clone()\nx[1:] = z[:-1]\ny.copy_(x)\nu = y.view(18)\nu.mul_(2)\ny.sum(), u",
    ),
}  # fmt: skip
