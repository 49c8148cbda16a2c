"""Calls whose result nothing defines, so that any two compilers may differ: in C++, or by torch's own documentation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def undefined_call(name: str, overload: str, args: Any, kwargs: Any) -> str:
    """Why the result of this call is undefined in C++ (so that any two compilers may differ), or nothing."""
    try:
        if name in _CASTS:
            return _undefined_cast(name, args, kwargs)
        if name in _SHIFTS and len(args) > 1:
            return _undefined_shift(args[0], args[1])
        if name in ("div", "div_") and not overload.endswith("_mode"):
            return ""  # true division: of integers it is one of floats
        if name in _DIVISIONS and len(args) > 1 and _is_integer(args[0]) and _is_integer(args[1]):
            return _undefined_division(args[0], args[1])
        if name.endswith("_") and name not in _WRITES_ONE_VALUE and _overlaps(args[0]):
            return "written in place where elements overlap"
        if name.startswith("as_strided"):
            return _undefined_window(args, kwargs)
        if name in _UNINITIALISED:
            return "uninitialised memory"
        if name in _BATCH_NORMS and any(_too_short(item, args[0].shape[1]) for item in args[1:5]):
            return BEYOND
        if name.removesuffix("_") in _PLACES and _collides(name.removesuffix("_"), overload, args, kwargs):
            return "several values written to one place"
        if "_polynomial_" in name and len(args) > 1 and not _all_finite(args[1]):
            return "degree of a polynomial that is no number"  # the kernels convert it to an integer
    except (RuntimeError, TypeError, IndexError):
        pass  # an odd overload: no claim about it
    return ""


_CASTS = {"_to_copy", "to", "copy_", "copy", "convert_element_type"}
_SHIFTS = {"bitwise_left_shift", "bitwise_right_shift", "__lshift__", "__rshift__", "bitwise_left_shift_",
           "bitwise_right_shift_", "__ilshift__", "__irshift__"}  # fmt: skip
_DIVISIONS = {"div", "div_", "floor_divide", "floor_divide_", "remainder", "remainder_", "fmod", "fmod_"}
_UNINITIALISED = {"empty", "empty_like", "empty_strided", "new_empty", "new_empty_strided", "resize_", "empty_permuted"}


#: Eager does not compare the sizes of their statistics and weights with the channels.
_BATCH_NORMS = {"native_batch_norm", "_native_batch_norm_legit", "_native_batch_norm_legit_functional", "batch_norm",
                "_native_batch_norm_legit_no_training", "_batch_norm_with_update"}  # fmt: skip
BEYOND = "reads beyond its arguments"

#: Writing the same value everywhere is defined, however the elements overlap.
_WRITES_ONE_VALUE = {"fill_", "zero_"}


def _all_finite(value: Any) -> bool:
    return bool(torch.as_tensor(value).isfinite().all())


def _too_short(value: Any, channels: int) -> bool:
    return isinstance(value, torch.Tensor) and value.numel() < channels


def _overlaps(value: Any) -> bool:
    """Do several elements certainly share memory: more of them than places they can lie in?"""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or not value.numel():
        return False
    return 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride())) < value.numel()


def _undefined_window(args: Any, kwargs: Any) -> str:
    """as_strided may name any element of the storage, but which storage a view has is the compiler's choice."""
    source = args[0]
    size, stride = [kwargs.get(name, args[at] if len(args) > at else ()) for at, name in ((1, "size"), (2, "stride"))]
    offset = kwargs.get("storage_offset", args[3] if len(args) > 3 else None)
    offset = source.storage_offset() if offset is None else offset
    if not source.numel() or 0 in size:
        return ""
    first = source.storage_offset()
    last = first + sum((extent - 1) * step for extent, step in zip(source.shape, source.stride()))
    reached = offset + sum((extent - 1) * step for extent, step in zip(size, stride))
    dense = last - first + 1 == source.numel()
    return "" if dense and first <= offset and reached <= last else "as_strided outside its input's own elements"


def _undefined_cast(name: str, args: Any, kwargs: Any) -> str:
    if name in ("copy_", "copy"):
        source, dtype = args[1], args[0].dtype
    else:
        source, dtype = args[0], kwargs.get("dtype")
    if dtype is None or dtype.is_floating_point or dtype.is_complex or dtype is torch.bool:
        return ""
    if not isinstance(source, torch.Tensor) or not source.is_floating_point() or not source.numel():
        return ""
    limits = torch.iinfo(dtype)
    wide = source.detach().to(torch.float64)
    # A float may lie in (min - 1, max + 1): truncation brings it into range.
    inside = (wide > float(limits.min) - 1) & (wide < float(limits.max) + 1)
    return "" if bool(inside.all()) else "float to integer out of range"


def _undefined_shift(value: Any, amount: Any) -> str:
    dtype = value.dtype if isinstance(value, torch.Tensor) else torch.int64
    amounts = amount if isinstance(amount, torch.Tensor) else torch.tensor(amount)
    if dtype.is_floating_point or amounts.is_floating_point():
        return ""
    bad = (amounts < 0) | (amounts >= torch.iinfo(dtype).bits)
    return "shift past the width" if bool(bad.any()) else ""


def _undefined_division(value: Any, divisor: Any) -> str:
    divisors = divisor if isinstance(divisor, torch.Tensor) else torch.tensor(divisor)
    return "integer division by zero" if bool((divisors == 0).any()) else ""


def _is_integer(value: Any) -> bool:
    if isinstance(value, torch.Tensor):
        return not (value.is_floating_point() or value.is_complex())
    return isinstance(value, int)


def _collides(name: str, overload: str, args: Any, kwargs: Any) -> bool:
    """Are several values that differ written to one place, so that the order of writing decides?"""
    accumulates = kwargs.get("accumulate", args[3] if name in ("put", "index_put") and len(args) > 3 else False)
    if accumulates or (name == "scatter" and overload != "src"):
        return False
    places, values = _PLACES[name](*args[:4], **kwargs)
    order = places.argsort()
    places, values = places[order], values[order]
    again = places[1:] == places[:-1]
    alike = (values[1:] == values[:-1]) | ((values[1:] != values[1:]) & (values[:-1] != values[:-1]))
    return bool((again & ~alike).any())


Written = tuple[torch.Tensor, torch.Tensor]


def _by_put(target: Any, index: Any, source: Any, *_more: Any, **_options: Any) -> Written:
    return (index % target.numel()).reshape(-1), source.reshape(-1)


def _by_scatter(target: Any, dim: int, index: Any, src: Any, **_options: Any) -> Written:
    grid = list(torch.meshgrid(*(torch.arange(size, device=index.device) for size in index.shape), indexing="ij"))
    grid[dim] = index
    return _flat(grid, target.shape), src[tuple(slice(size) for size in index.shape)].reshape(-1)


def _by_index_copy(target: Any, dim: int, index: Any, source: Any, **_options: Any) -> Written:
    shape = [1] * source.dim()
    shape[dim] = -1
    return _by_scatter(target, dim, index.reshape(shape).expand(source.shape), source)


def _by_index_put(target: Any, indices: Any, values: Any, *_more: Any, **_options: Any) -> Written:
    """Where leading dimensions are indexed by integers; of other forms nothing is said."""
    if any(index is None or index.dtype in (torch.bool, torch.uint8) for index in indices):
        raise TypeError("masks name no place twice; slices are left out")
    indices = torch.broadcast_tensors(*indices)
    kept = target.shape[len(indices) :]
    wide = [index.reshape(*index.shape, *([1] * len(kept))).expand(*index.shape, *kept) for index in indices]
    ranges = (torch.arange(size, device=target.device) for size in kept)
    rest = torch.meshgrid(*ranges, indexing="ij") if kept else ()
    places = _flat([*wide, *(item.expand(wide[0].shape) for item in rest)], target.shape)
    return places, values.expand(wide[0].shape).reshape(-1)


def _flat(coordinates: Any, shape: Any) -> torch.Tensor:
    """Positions in a tensor of that shape, in row-major order; negative coordinates count from the end."""
    places: Any = 0
    for coordinate, size in zip(coordinates, shape):
        places = places * size + coordinate % size
    return torch.as_tensor(places).reshape(-1)


#: Where each of these operators writes, and what.
_PLACES: dict[str, Callable[..., Written]] = {
    "put": _by_put, "scatter": _by_scatter, "index_copy": _by_index_copy, "index_put": _by_index_put
}  # fmt: skip
