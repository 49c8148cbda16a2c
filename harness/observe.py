"""Facts about what a program really ran: its operators with shapes, strides and dataflow, and its input values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

#: Enough for any program worth reading; a loop of ten thousand operators must not fill the wire.
_OPS_CAP = 300
_VALUES_CAP = 1 << 16


class OperatorTrace(TorchDispatchMode):
    """Records each dispatched operator as the wire's ``OpMap``. Keeps tensors alive so that ids stay unique."""

    #: torch.cond and its like come through here too; they are run, their bodies are recorded.
    supports_higher_order_operators = True

    def __init__(self, inputs: list[torch.Tensor]) -> None:
        super().__init__()
        self.ops: list[dict[str, Any]] = []
        self.index_sources: dict[int, IndexSource] = {}
        self._alive: list[Any] = list(inputs)
        self._producer: dict[int, int] = {id(tensor): -(index + 1) for index, tensor in enumerate(inputs)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not isinstance(func, torch._ops.OpOverload):
            return func(*args, **kwargs)
        record: dict[str, Any] | None = None
        if len(self.ops) < _OPS_CAP:
            tensors = [item for item in tree_leaves((args, kwargs)) if isinstance(item, torch.Tensor)]
            record = {
                "op": f"{func.namespace}.{func._opname}.{func._overloadname}",
                "inputs": [self._producer[id(item)] for item in tensors if id(item) in self._producer],
                "tensors": [_layout(item) for item in tensors],
                "outputs": [],
            }
        undefined = _undefined(func._opname, func._overloadname, args, kwargs) if record is not None else ""
        result = func(*args, **kwargs)
        self._note_index_source(func._opname, args, kwargs, result)
        if record is not None:
            number = len(self.ops)
            for item in tree_leaves(result):
                if isinstance(item, torch.Tensor):
                    record["outputs"].append(_layout(item))
                    self._producer[id(item)] = number
                    self._alive.append(item)
            if undefined:
                record["undefined"] = undefined
            cancelled = _cancellation(func._opname, args)
            if cancelled:
                record["cancellation"] = cancelled
            self.ops.append(record)
        return result

    def _note_index_source(self, name: str, args: Any, kwargs: Any, result: Any) -> None:
        """Remember which values an index result points into, so that ties can be told from wrong indices."""
        if name in _SAME_ELEMENTS:
            source = self.index_sources.get(id(args[0])) if args else None
            if source is not None and isinstance(result, torch.Tensor) and result.numel() == args[0].numel():
                self.index_sources[id(result)] = source
                self._alive.append(result)
            return
        if name not in _INDEX_REDUCTIONS:
            return
        dim = kwargs.get("dim", next((item for item in args[1:] if isinstance(item, int)), None))
        for item in tree_leaves(result):
            if isinstance(item, torch.Tensor) and item.dtype is torch.int64:
                planes = _POOLS.get(name)
                values = args[0].detach().clone()
                self.index_sources[id(item)] = IndexSource(values, dim, tuple(item.shape), planes)
                self._alive.append(item)


_INDEX_REDUCTIONS = {"argmax", "argmin", "max", "min", "sort", "argsort", "topk", "kthvalue", "mode", "median",
                     "nanmedian", "cummax", "cummin", "max_pool2d_with_indices", "max_pool3d_with_indices",
                     "adaptive_max_pool2d", "adaptive_max_pool3d", "fractional_max_pool2d"}  # fmt: skip

#: Pooling: the number of dimensions of one plane, within which its indices count.
_POOLS = {"max_pool2d_with_indices": 2, "max_pool3d_with_indices": 3, "adaptive_max_pool2d": 2,
          "adaptive_max_pool3d": 3, "fractional_max_pool2d": 2}  # fmt: skip

#: Operators whose result has the elements of their first argument, in the same order.
_SAME_ELEMENTS = {"squeeze", "unsqueeze", "view", "_unsafe_view", "reshape", "alias", "detach", "clone"}


@dataclass(frozen=True)
class IndexSource:
    """What an index result points into: along ``dim`` (None: into the flattened tensor), or within planes of
    ``planes`` dimensions. ``shape`` is that of the operator's own result."""

    values: torch.Tensor
    dim: int | None
    shape: tuple[int, ...]
    planes: int | None = None

    def gather(self, indices: torch.Tensor) -> torch.Tensor:
        """The values at the indices. Raises ``RuntimeError`` or ``IndexError`` where these do not fit."""
        values, indices = self.values, indices.reshape(self.shape)
        if self.planes is not None:
            return values.flatten(-self.planes).gather(-1, indices.flatten(-self.planes))
        if self.dim is None:
            return values.reshape(-1)[indices.reshape(-1)]
        if len(self.shape) < values.dim():
            indices = indices.unsqueeze(self.dim)
        return values.gather(self.dim, indices)


def gathered_equal(source: IndexSource, eager: torch.Tensor, compiled: torch.Tensor) -> bool | None:
    """Do both sets of indices point at equal values (a tie)? None where the indices do not fit the source."""
    try:
        left, right = source.gather(eager), source.gather(compiled)
    except (RuntimeError, IndexError):
        return None
    return bool(((left == right) | (left.isnan() & right.isnan())).all())


_SUMS = {"sum", "mean", "nansum"}
_LEAST_SUMMED = 64  # fewer elements lose no digits that matter


def _cancellation(name: str, args: Any) -> float:
    """Of a sum over all elements: sum of magnitudes over magnitude of the sum, its condition number; 0 for others.

    (Higham, Accuracy and Stability of Numerical Algorithms, chapter 4.) Sums over dimensions are not looked at: their
    errors show beside elements that lost nothing.
    """
    if name not in _SUMS or not args or not isinstance(args[0], torch.Tensor):
        return 0.0
    values = args[0].detach()
    if not values.is_floating_point() or values.numel() < _LEAST_SUMMED or values.layout is not torch.strided:
        return 0.0
    if len(args) > 1 and args[1] not in (None, [], list(range(values.dim()))):
        return 0.0
    wide = values.to(torch.float64)
    total, magnitude = float(wide.sum().abs()), float(wide.abs().sum())
    return min(magnitude / total, 1e300) if total and magnitude < float("inf") else 0.0


def _undefined(name: str, overload: str, args: Any, kwargs: Any) -> str:
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


def _layout(tensor: torch.Tensor) -> list[Any]:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if tensor.layout is not torch.strided:
        return [dtype, list(tensor.shape), [], 0]
    return [dtype, list(tensor.shape), list(tensor.stride()), tensor.storage_offset()]


def value_words(value: Any) -> list[str]:
    """Words for what the elements of a tensor are like: nan, inf, zero, negative, huge, denormal, extreme, ties."""
    if not isinstance(value, torch.Tensor) or value.layout is not torch.strided or value.is_quantized:
        return []
    tensor = value.detach().reshape(-1)[:_VALUES_CAP]
    if not tensor.numel():
        return ["empty"]
    if tensor.is_complex():
        tensor = torch.view_as_real(tensor.resolve_conj().resolve_neg()).reshape(-1)
    words = []
    try:
        if tensor.is_floating_point():
            wide = tensor.to(torch.float64)
            info = torch.finfo(tensor.dtype)
            finite = wide[wide.isfinite()]
            checks = {
                "nan": wide.isnan().any(),
                "inf": wide.isinf().any(),
                "huge": (finite.abs() > float(info.max) ** 0.5).any(),
                "denormal": ((finite != 0) & (finite.abs() < float(info.tiny))).any(),
            }
            words += [word for word, present in checks.items() if present]
        elif tensor.dtype is not torch.bool:
            limits = torch.iinfo(tensor.dtype)
            wide = tensor.to(torch.int64)
            if bool(((wide == limits.max) | (wide == limits.min)).any()) and limits.min != 0:
                words.append("extreme")
        else:
            wide = tensor.to(torch.int64)
        if bool((wide == 0).any()):
            words.append("zero")
        if bool((wide < 0).any()):
            words.append("negative")
        if tensor.dtype is not torch.bool and 1 < wide.numel() <= 4096 and wide.unique().numel() < wide.numel():
            words.append("ties")
    except RuntimeError:
        pass  # a dtype without these kernels in this torch: no words about it
    return words
