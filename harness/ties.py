"""Eager execution that decides ties the other way: does a result hang on which of several equal values is named first?

The index of an extremum that is met more than once is any of several, and so is everything computed from it. Run under
``OtherTies`` eager names another of them; what changes then says nothing about the compiler.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

#: Larger tensors are left as they are: ranking them would cost more than it tells.
_LARGEST = 1 << 20


class OtherTies(TorchDispatchMode):
    """Replaces the index results of reductions, poolings and unstable sorts; values stay those of the original.

    The values are ranked, equal ones are told apart by their position so that the last of them wins (or the first, if
    the last did already), and the operator is asked again for the indices of these.

    Attributes:
        changed: whether any index became another.
    """

    def __init__(self) -> None:
        super().__init__()
        self.changed = False

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        result = func(*args, **kwargs)
        largest = _DIRECTIONS.get(getattr(func, "_opname", ""))
        if largest is None or func._overloadname in _PROMISED or not args:
            return result
        for later in (True, False):  # eager itself names the first of equal numbers, but the last NaN of a pool
            upwards = largest(args, kwargs) is later
            ranked = _ranked(args[0], upwards, nan_first=func._opname in _MINIMA)
            if ranked is None:
                break
            pairs = _indices(result, func(ranked, *args[1:], **kwargs))
            if not all(torch.equal(index, other) for index, other in pairs):
                self.changed = True
                for index, other in pairs:
                    index.copy_(other)
                break
        return result


def _indices(result: Any, other: Any) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """The index results of both calls, side by side."""
    both = [(result, other)] if isinstance(result, torch.Tensor) else list(zip(result, other))
    return [(left, right) for left, right in both if left.dtype is right.dtype is torch.int64]


def _ranked(values: Any, upwards: bool, nan_first: bool) -> torch.Tensor | None:
    """Float64 values in the same order as ``values``, no two equal: of equal ones the later is the larger
    (``upwards``) or the smaller one.

    NaN are equal to each other here; they stand above all values, or with ``nan_first`` below: they win either way.
    None where there is nothing to decide.
    """
    if not isinstance(values, torch.Tensor) or not 0 < values.numel() <= _LARGEST or values.is_complex():
        return None
    plain, nan = values.detach(), values.detach().isnan()
    distinct, found = torch.unique(plain[~nan], return_inverse=True)
    if distinct.numel() + min(1, int(nan.sum())) == plain.numel():
        return None
    ranks = torch.full(plain.shape, -1.0 if nan_first else distinct.numel(), dtype=torch.float64, device=plain.device)
    ranks[~nan] = found.to(torch.float64)
    position = torch.arange(plain.numel(), dtype=torch.float64, device=plain.device).reshape(plain.shape)
    step = position / (plain.numel() + 1)
    return ranks + (step if upwards else -step)


def _argument(args: Any, kwargs: Any, position: int, name: str, default: bool) -> bool:
    return bool(kwargs.get(name, args[position] if len(args) > position else default))


def _always(largest: bool) -> Callable[[Any, Any], bool]:
    return lambda args, kwargs: largest


_MINIMA = ("argmin", "min", "cummin")

#: Operator -> does the largest value come first? Overloads that promise an order are left alone.
_DIRECTIONS: dict[str, Callable[[Any, Any], bool]] = {
    **dict.fromkeys(("argmax", "max", "cummax", "kthvalue", "median"), _always(True)),
    **dict.fromkeys(_MINIMA, _always(False)),
    **dict.fromkeys(("max_pool2d_with_indices", "max_pool3d_with_indices"), _always(True)),
    **dict.fromkeys(("adaptive_max_pool2d", "adaptive_max_pool3d"), _always(True)),
    **dict.fromkeys(("fractional_max_pool2d", "fractional_max_pool3d"), _always(True)),
    "topk": lambda args, kwargs: _argument(args, kwargs, 3, "largest", True),
    "sort": lambda args, kwargs: _argument(args, kwargs, 2, "descending", False),
}
_PROMISED = frozenset({"stable"})
