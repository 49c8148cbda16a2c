"""The float64 reference: the same program, with every floating-point number widened.

Inputs and module parameters become float64 (complex64 → complex128). Casts that are written into the program
(``x.half()``, ``dtype=torch.float32``) would make that useless, so a function mode widens them as well.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._pytree import tree_map

_WIDE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}
for _name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz", "complex32"):
    _dtype = getattr(torch, _name, None)
    if _dtype is not None:
        _WIDE[_dtype] = torch.complex128 if _dtype.is_complex else torch.float64

_NARROWING_METHODS = {
    torch.Tensor.half: torch.Tensor.double,
    torch.Tensor.bfloat16: torch.Tensor.double,
    torch.Tensor.float: torch.Tensor.double,
}


def widen_dtype(dtype: torch.dtype) -> torch.dtype:
    return _WIDE.get(dtype, dtype)


def widen(value: Any) -> Any:
    """A tensor, module, or any nest of containers with every float widened; layout and requires_grad are kept."""
    if isinstance(value, torch.nn.Module):
        return value.double()
    return tree_map(_widen_tensor, value)


def _widen_tensor(value: Any) -> Any:
    if not isinstance(value, torch.Tensor) or value.dtype not in _WIDE:
        return value.double() if isinstance(value, torch.nn.Module) else value
    if value.layout is not torch.strided:
        return value.detach().to(widen_dtype(value.dtype)).requires_grad_(value.requires_grad)
    with torch.no_grad():
        # Same sizes and strides (expanded inputs too), so that layout-dependent code takes the same way.
        wide = torch.empty_strided(value.size(), value.stride(), dtype=widen_dtype(value.dtype), device=value.device)
        if wide.numel():
            extent = 1 + sum((size - 1) * stride for size, stride in zip(value.size(), value.stride()))
            wide.as_strided((extent,), (1,)).copy_(value.detach().as_strided((extent,), (1,)))
    return wide.requires_grad_(value.requires_grad)


class WidenCasts(TorchFunctionMode):
    """Replaces floating dtypes in the arguments of every torch call by the wide ones."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        func = _NARROWING_METHODS.get(func, func)
        if func in _KEEP_DTYPE:
            return func(*args, **(kwargs or {}))
        return func(*_widen_arguments(args), **_widen_arguments(kwargs or {}))


#: Reinterpreting bits, or asking for the limits of a type, means nothing at another width.
_KEEP_DTYPE = {torch.Tensor.view, torch.finfo, torch.iinfo}


def _widen_arguments(arguments: Any) -> Any:
    return tree_map(lambda item: widen_dtype(item) if isinstance(item, torch.dtype) else item, arguments)


@contextlib.contextmanager
def widened() -> Iterator[None]:
    """Inside: float64 by default, and casts to narrower floats become casts to float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        with WidenCasts():
            yield
    finally:
        torch.set_default_dtype(before)


def nudged(value: Any, seed: int = 0) -> Any:
    """Every floating element moved by one ULP, up or down at random: how well conditioned is the program?"""
    generator = torch.Generator().manual_seed(seed)

    def nudge(item: Any) -> Any:
        if not isinstance(item, torch.Tensor) or item.dtype not in (torch.float16, torch.bfloat16, torch.float32,
                                                                    torch.float64):  # fmt: skip
            return item
        if item.layout is not torch.strided or not item.numel():
            return item
        with torch.no_grad():
            extent = 1 + sum((size - 1) * stride for size, stride in zip(item.size(), item.stride()))
            flat = item.detach().as_strided((extent,), (1,))
            up = torch.rand(extent, generator=generator) < 0.5
            moved = _next_after(flat, up.to(flat.device))
            # Zeros stay: exact zeros (padding, masks, ReLU) are values that programs rely on.
            flat.copy_(torch.where((flat == 0) | ~torch.isfinite(flat), flat, moved))
        return item

    if isinstance(value, (tuple, list)):
        return type(value)(nudged(item, seed + index) for index, item in enumerate(value))
    if isinstance(value, torch.nn.Module):
        for parameter in value.parameters():
            nudge(parameter)
        return value
    return tree_map(nudge, value)


def _next_after(values: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
    if values.dtype in (torch.float32, torch.float64):
        target = torch.where(up, torch.inf, -torch.inf).to(values.dtype)
        return torch.nextafter(values, target)
    step = torch.finfo(values.dtype).eps * values.abs()
    return torch.where(up, values + step, values - step)
