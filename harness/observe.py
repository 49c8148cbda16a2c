"""Facts about what a program really ran: its operators with shapes, strides and dataflow, and its input values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from harness.undefined import undefined_call

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
        undefined = undefined_call(func._opname, func._overloadname, args, kwargs) if record is not None else ""
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
