"""Live values to records, and back to results: what a call's arguments are, and what running it shows."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from harness.catalogue.source import COMPLEX, FLOATING, bind, invocation

#: Integer and boolean tensors up to this size keep their values: they are indices, lengths, targets.
MOST_DATA = 32


class UnrecordableError(Exception):
    """A value that has no record: a lambda, a generator, a sparse or quantised tensor."""


def name_of(dtype: torch.dtype) -> str:
    """``"float32"`` for ``torch.float32``."""
    return str(dtype).removeprefix("torch.")


def describe(value: Any, exact: bool = False) -> dict[str, Any]:
    """The record of an argument; see ``harness.catalogue.source``. ``exact`` keeps small float tensors' values too.

    Raises:
        UnrecordableError: there is no source text for such a value.
    """
    if isinstance(value, torch.Tensor):
        return _describe_tensor(value, exact)
    if isinstance(value, (list, tuple)) and _has_tensor(value):
        items = [describe(item, exact) for item in value]
        return {"t": "list", "items": items, "tuple": isinstance(value, tuple)}
    return {"t": "literal", "text": literal(value)}


def _has_tensor(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return any(_has_tensor(item) for item in value)
    return isinstance(value, torch.Tensor)


def literal(value: Any) -> str:
    """Source text of a plain value. Raises ``UnrecordableError``."""
    if value is None or value is Ellipsis or type(value) in (bool, int, str):
        return "..." if value is Ellipsis else repr(value)
    if type(value) is float:
        return repr(value) if math.isfinite(value) else f"float('{value}')"
    if type(value) is complex:
        return f"complex({literal(value.real)}, {literal(value.imag)})"
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return str(value) if str(value).startswith("torch.") else f"torch.{value}"
    if type(value) is torch.device:
        return f"torch.device({str(value)!r})"
    if type(value) is slice:
        return f"slice({literal(value.start)}, {literal(value.stop)}, {literal(value.step)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(literal, value))}{',' if len(value) == 1 else ''})"
    if type(value) is list:
        return f"[{', '.join(map(literal, value))}]"
    raise UnrecordableError(type(value).__name__)


def _describe_tensor(value: torch.Tensor, exact: bool) -> dict[str, Any]:
    plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided
    if not plain or value.is_quantized or value.is_nested:
        raise UnrecordableError(f"tensor {type(value).__name__} {value.layout} {value.dtype}")
    dtype = name_of(value.dtype)
    if dtype not in _KNOWN:
        raise UnrecordableError(f"tensor of {dtype}")
    record: dict[str, Any] = {"t": "tensor", "shape": list(value.shape), "dtype": dtype}
    value_, floating = value.detach(), dtype in FLOATING
    record["low"], record["high"] = _bounds(value_, dtype)
    record["grad"] = bool(value.requires_grad)
    record["layout"] = "contiguous" if value.is_contiguous() else "strided"
    small = 0 < value.numel() <= MOST_DATA
    if small and (exact if floating else dtype not in COMPLEX):
        record["data"] = _rounded(value_.to(torch.float64).tolist()) if floating else value_.tolist()
        record["layout"] = "contiguous"
    return record


def _bounds(value: torch.Tensor, dtype: str) -> tuple[float | int, float | int]:
    if value.numel() == 0:
        return (0, 1) if dtype not in FLOATING + COMPLEX else (-1.0, 1.0)
    if dtype not in FLOATING + COMPLEX:
        whole = value.to(torch.int64)
        return int(whole.min()), int(whole.max())
    real = torch.view_as_real(value.resolve_conj().resolve_neg()) if dtype in COMPLEX else value
    real = real.to(torch.float64)
    finite = real[real.isfinite()]
    if finite.numel() == 0:
        return -1.0, 1.0
    return _short(float(finite.min())), _short(float(finite.max()))


def _short(number: float) -> float:
    return float(f"{number:.4g}")


def _rounded(data: Any) -> Any:
    return [_rounded(item) for item in data] if isinstance(data, list) else float(f"{data:.6g}")


_KNOWN = frozenset(
    (*FLOATING, *COMPLEX, "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
)


class Dispatched(TorchDispatchMode):
    """Collects the operators that reach the dispatcher below autograd and composite operators."""

    def __init__(self) -> None:
        super().__init__()
        self.ops: list[Any] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.ops.append(func)
        return func(*args, **(kwargs or {}))


class Ran(NamedTuple):
    """What running a call showed."""

    value: Any
    first: Any  # the first argument, where it is a tensor
    ops: list[Any]  # overloads dispatched, in order
    drew: bool  # drew from the random generator


def run(
    form: Mapping[str, Any], call: Mapping[str, Any], grad: bool | None = None, out: Any = None, cast: str = ""
) -> Ran:
    """Run a recorded call from its source text on fresh inputs. Raises whatever the operator raises.

    ``cast`` converts the module of a ``module`` form to that dtype first.
    """
    bound = bind(call, grad)
    scope: dict[str, Any] = {"torch": torch}
    for name, text in bound.inputs:
        scope[name] = eval(text, scope)
    if form["form"] == "module":
        module = eval(form["text"], scope)
        scope["m"] = module.to(getattr(torch, cast)) if cast in FLOATING + COMPLEX else module
    scope["o"] = out
    code = invocation(form, bound.args, bound.kwargs, out="o", module="m")
    before = _generator_state()
    with Dispatched() as seen:
        if form["form"] == "statement":
            exec(code, scope)
            value = scope["x0"]
        else:
            value = eval(code, scope)
    drew = not torch.equal(before, _generator_state())
    first = scope.get(bound.args[0]) if bound.args else None
    return Ran(value, first, seen.ops, drew)


def _generator_state() -> torch.Tensor:
    """Of the default device's generator, where it is the CPU's or CUDA's."""
    return torch.cuda.get_rng_state() if torch.get_default_device().type == "cuda" else torch.get_rng_state()


def leaves(value: Any) -> Iterator[Any]:
    """The leaves of nested lists, tuples and named tuples."""
    if isinstance(value, (list, tuple)):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def kind_of(value: Any) -> list[tuple[Any, ...]]:
    """What two results must share to come from the same operator: dtypes and ranks, not data-dependent sizes."""
    return [
        (name_of(leaf.dtype), leaf.dim()) if isinstance(leaf, torch.Tensor) else (type(leaf).__name__,)
        for leaf in leaves(value)
    ]


def same(one: Any, other: Any) -> bool:
    """Equal leaf by leaf: dtype, shape and values, NaN equal to NaN; small differences of rounding are allowed."""
    if kind_of(one) != kind_of(other):
        return False
    for mine, theirs in zip(leaves(one), leaves(other)):
        if not isinstance(mine, torch.Tensor):
            if mine != theirs and mine == mine:
                return False
        elif mine.shape != theirs.shape or not torch.allclose(_wide(mine), _wide(theirs), 1e-4, 1e-5, equal_nan=True):
            return False
    return True


def _wide(value: torch.Tensor) -> torch.Tensor:
    return value.detach().to(torch.complex128 if value.is_complex() else torch.float64)


def empty_like(value: Any) -> Any:
    """Tensors to pass as ``out=``. Raises ``UnrecordableError`` where the result holds more than tensors."""
    if isinstance(value, torch.Tensor):
        return torch.empty_like(value.detach())
    if isinstance(value, (list, tuple)) and value and all(isinstance(item, torch.Tensor) for item in value):
        return tuple(torch.empty_like(item.detach()) for item in value)
    raise UnrecordableError(type(value).__name__)


def seed(number: int) -> None:
    """The same random numbers for the same operator, whatever ran before."""
    random.seed(number)
    torch.manual_seed(number)
