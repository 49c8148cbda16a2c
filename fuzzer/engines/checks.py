"""What the probe executes beside the statements themselves: checks that a statement leaves the program sound.

The functions are defined once in the probe child, which evaluates them on its live values; a failed check refuses the
statement like any other exception.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: ``_differentiate``: gradients of the results so far exist. ``_run``: the whole program, as the harness will run it.
#: ``_fits``: floats to be converted lie in the integer's range: the conversion is undefined otherwise.
SETUP = """
def _differentiate(values, inputs):
    leaves = [v for v in inputs if isinstance(v, torch.Tensor) and v.requires_grad and v.is_leaf]
    for module in (v for v in inputs if isinstance(v, torch.nn.Module)):
        leaves += [p for p in module.parameters() if p.requires_grad]
    roots = [v for v in torch.utils._pytree.tree_leaves(values) if isinstance(v, torch.Tensor) and v.requires_grad]
    roots = [v for v in roots if v.is_floating_point() or v.is_complex()]
    if roots and leaves:
        ones = [torch.ones_like(v) for v in roots]
        torch.autograd.grad(roots, leaves, ones, retain_graph=True, allow_unused=True)


def _fits(value, dtype):
    if isinstance(value, torch.Tensor) and value.is_floating_point() and value.numel():
        info, wide = torch.iinfo(dtype), value.detach().to(torch.float64)
        if not bool(((wide > info.min - 1) & (wide < info.max + 1)).all()):
            raise ValueError("out of range")


def _run(text, second=False):
    scope = {"__name__": "program"}
    exec(text, scope)
    mode = scope["META"].get("mode", "forward")
    inputs = scope["build_inputs2" if second else "build_inputs"]()
    for value in inputs:
        if isinstance(value, torch.nn.Module):
            value.train(mode == "train")
    with torch.set_grad_enabled(not scope["META"].get("no_grad")):
        result = scope["fn"](*inputs)
    if mode == "jit_trace":  # what the tracer itself refuses tells nothing of a compiler
        torch.jit.trace(scope["fn"], inputs, check_trace=False)(*scope["build_inputs"]())
    if mode in ("backward", "train"):
        leaves = torch.utils._pytree.tree_leaves(result)
        roots = [v for v in leaves if isinstance(v, torch.Tensor) and v.requires_grad]
        roots = [v for v in roots if v.is_floating_point() or v.is_complex()]
        torch.autograd.backward(roots, [torch.ones_like(v) for v in roots])
        if not roots:
            raise ValueError("nothing to differentiate")
"""

_CASTS = {"int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8"}
_TO_INTEGER = re.compile(r"\.(int|long|short|char|byte)\(|torch\.(u?int(?:8|16|32|64))\b")


def whole_run(text: str, second: bool = False) -> str:
    return f"_run({text!r}, {second})"


def gradient_check(results: Sequence[str], inputs: Sequence[str]) -> str:
    return f"_differentiate([{', '.join(results)}], [{', '.join(inputs)}])"


def range_checks(lines: Sequence[str], reads: Sequence[str]) -> list[str]:
    """For every live tensor that a statement converts to integers, perhaps: does it fit?"""
    found = _TO_INTEGER.findall("\n".join(lines))
    dtypes = sorted({_CASTS.get(method, "") or dtype for method, dtype in found})
    narrow = min(dtypes, key=lambda dtype: (int(dtype.lstrip("uint")), dtype), default="")
    return [f"_fits({name}, torch.{narrow})" for name in reads] if narrow else []
