"""Facts about two results of the same program. Counts and distances only: nothing here decides what is wrong."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

import torch

_WORST = 4
_TEXT_CAP = 200
_ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # two fresh objects of one class are no difference


def flatten(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Leaves of a result with their paths: ``out[0]``, ``out['k'].weight``; containers are walked, not compared."""
    if isinstance(value, (tuple, list)):
        for index, item in enumerate(value):
            yield from flatten(f"{path}[{index}]", item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from flatten(f"{path}[{key!r}]", item)
    elif isinstance(value, torch.nn.Module):
        for name, item in value.named_parameters():
            yield f"{path}.{name}", item
        for name, item in value.named_buffers():
            yield f"{path}.{name}", item
    else:
        yield path, value


def largest(leaves: list[tuple[str, Any]]) -> float:
    """Largest magnitude among the elements of all tensors; NaN where there is one."""
    tensors = [leaf.detach() for _path, leaf in leaves if isinstance(leaf, torch.Tensor) and leaf.numel()]
    found = [tensor.abs().max().item() for tensor in tensors]
    return math.nan if any(math.isnan(value) for value in found) else float(max(found, default=0.0))


def tensor_facts(value: Any) -> dict[str, Any] | None:
    """The wire's ``TensorMap``, or None for anything but a tensor."""
    if not isinstance(value, torch.Tensor):
        return None
    strided = value.layout is torch.strided
    return {
        "dtype": str(value.dtype).removeprefix("torch."),
        "shape": [int(size) for size in value.shape],
        "stride": [int(stride) for stride in value.stride()] if strided else [],
        "offset": int(value.storage_offset()) if strided else 0,
        "requires_grad": bool(value.requires_grad),
        "device": str(value.device),
    }


def compare(path: str, eager: Any, compiled: Any, reference: Any = None) -> dict[str, Any] | None:
    """Facts of one pair of leaves, or None when there is nothing to tell (equal in value and in metadata).

    Args:
        reference: the float64 value of the same leaf, or None where there is no reference.
    """
    if type(eager).__module__ == "numpy" and type(compiled).__module__ == "numpy":
        eager, compiled, reference = (_from_numpy(value) for value in (eager, compiled, reference))
    if isinstance(eager, float) and isinstance(compiled, float):
        return compare(path, *_as_tensors(eager, compiled, reference))
    left, right = tensor_facts(eager), tensor_facts(compiled)
    if left is None or right is None:
        return _compare_plain(path, eager, compiled, left, right)
    leaf: dict[str, Any] = {"path": path, "eager": left, "compiled": right, "numel": eager.numel()}
    if left["shape"] != right["shape"]:
        return leaf | {"differing": -1, "reference": "none: other shape"}
    if _outside_storage(compiled):
        return leaf | {"differing": eager.numel(), "outside_storage": True, "reference": "none: outside its storage"}
    wide_left, wide_right = _comparable(eager), _comparable(compiled)
    if wide_left is None or wide_right is None:
        return leaf | {"differing": -1, "reference": "none: no dense values"}
    if torch.equal(wide_left, wide_right) and not _zero_signs(wide_left, wide_right):
        return None if left == right else leaf | {"differing": 0}
    leaf |= _difference(wide_left, wide_right)
    if leaf["differing"]:
        leaf["same"] = _same(eager, compiled, reference)
        leaf |= _against_reference(eager, wide_left, wide_right, reference)
    elif left == right and not leaf["sign_of_zero"]:
        return None
    return leaf


def _from_numpy(value: Any) -> Any:
    """Arrays and numbers of numpy as tensors; where eager has a number, Dynamo may have an array of no dimensions."""
    if type(value).__module__ != "numpy":
        return value
    try:
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError):
        return value  # strings, objects: compared as what they are


def _as_tensors(eager: float, compiled: float, reference: Any) -> tuple[torch.Tensor, torch.Tensor, Any]:
    """Numbers that ``.item()`` took out of tensors; of float32 where both are such numbers."""
    values = torch.tensor([eager, compiled], dtype=torch.float64)
    narrow = values.to(torch.float32)
    if torch.equal(narrow.to(torch.float64).nan_to_num(), values.nan_to_num()):
        values = narrow
    if isinstance(reference, float):
        reference = torch.tensor(reference, dtype=torch.float64)
    return values[0].clone(), values[1].clone(), reference


def _outside_storage(value: torch.Tensor) -> bool:
    """Does the tensor claim elements beyond its storage? Reading them would be refused, or worse."""
    if value.layout is not torch.strided or not value.numel() or value.is_quantized:
        return False
    last = value.storage_offset() + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
    try:
        return (last + 1) * value.element_size() > value.untyped_storage().nbytes()
    except (RuntimeError, NotImplementedError):
        return False  # a subclass without storage


def _compare_plain(path: str, eager: Any, compiled: Any, left: Any, right: Any) -> dict[str, Any] | None:
    if left is None and right is None and type(eager) is type(compiled):
        try:
            equal = bool(eager == compiled) or (eager != eager and compiled != compiled)
        except Exception:  # a user-defined __eq__ may do anything; then identity of the text decides
            equal = _text(eager) == _text(compiled)
        if equal or _text(eager) == _text(compiled):
            return None
    leaf = {
        "path": path,
        "eager": left,
        "compiled": right,
        "differing": 1,
        "numel": 1,
        "reference": "none: no tensor",
    }
    if eager is None and isinstance(compiled, torch.Tensor):
        leaf["only_zeros"] = not bool(compiled.detach().count_nonzero())
    return leaf | {"eager_text": _text(eager), "compiled_text": _text(compiled)}


def _text(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"tensor {value.dtype} {tuple(value.shape)}"
    try:
        text = repr(value)
    except Exception as error:  # repr of a stranger's object
        text = f"<{type(value).__name__}: repr failed, {type(error).__name__}>"
    return _ADDRESS.sub("", text)[:_TEXT_CAP]


def _comparable(value: torch.Tensor) -> torch.Tensor | None:
    """Dense real values that ``==`` understands: float8 as float32, complex as pairs, quantised as integers."""
    value = value.detach()
    try:
        if value.is_quantized:
            return value.int_repr()
        if value.layout is not torch.strided:
            value = value.to_dense()
        if value.is_complex():
            value = torch.view_as_real(value.resolve_conj().resolve_neg())
        value = value.resolve_neg()
        if str(value.dtype).startswith("torch.float8"):
            return value.float().cpu()
        if value.dtype in (torch.uint16, torch.uint32, torch.uint64):
            value = value.view(getattr(torch, str(value.dtype).removeprefix("torch.u")))
        return value.cpu()
    except (RuntimeError, NotImplementedError, TypeError):
        return None  # a layout that this torch cannot densify


def _zero_signs(left: torch.Tensor, right: torch.Tensor) -> bool:
    return left.is_floating_point() and bool((torch.signbit(left) != torch.signbit(right)).any())


def _difference(left: torch.Tensor, right: torch.Tensor) -> dict[str, Any]:
    if not (left.is_floating_point() and right.is_floating_point()):
        differs = left.ne(right) if left.dtype == right.dtype else left.to(torch.float64).ne(right.to(torch.float64))
        count = int(differs.sum())
        facts: dict[str, Any] = {"differing": count, "sign_of_zero": 0}
        if count:
            gap = (left.to(torch.float64) - right.to(torch.float64)).abs()
            facts |= {"max_abs": float(gap.max()), "worst": _worst(gap, left, right, None)}
        return facts
    nan_left, nan_right = left.isnan(), right.isnan()
    both_nan = nan_left & nan_right
    differs = left.ne(right) & ~both_nan
    signs = (left == 0) & (right == 0) & (torch.signbit(left) != torch.signbit(right))
    inf_left, inf_right = left.isinf(), right.isinf()
    a, b = left.to(torch.float64), right.to(torch.float64)
    finite = a.isfinite() & b.isfinite()
    gap = torch.where(finite, (a - b).abs(), torch.zeros_like(a))
    scale = torch.maximum(a.abs(), b.abs())
    facts = {
        "differing": int(differs.sum()),
        "sign_of_zero": int(signs.sum()),
        "nan_eager": int(nan_left.sum()),
        "nan_compiled": int(nan_right.sum()),
        "nan_mismatch": int((nan_left ^ nan_right).sum()),
        "inf_mismatch": int(((inf_left | inf_right) & left.ne(right) & ~nan_left & ~nan_right).sum()),
        "max_abs": _largest(gap),
        "max_rel": _largest(torch.where(gap > 0, gap / scale.clamp(min=1e-300), torch.zeros_like(gap))),
    }
    info = torch.finfo(left.dtype)
    facts["max_ulp"] = _largest(gap / (info.eps * scale).clamp(min=_smallest_step(info)))
    return facts


def _against_reference(eager: torch.Tensor, left: torch.Tensor, right: torch.Tensor, reference: Any) -> dict[str, Any]:
    """Errors of both sides against the float64 value, in ULPs of the result's dtype."""
    if not isinstance(reference, torch.Tensor):
        return {"reference": "none: " + ("not run" if reference is None else str(reference)[:_TEXT_CAP])}
    wide = _comparable(reference)
    if wide is None or wide.shape != left.shape:
        return {"reference": "none: other shape"}
    if not left.is_floating_point():
        if wide.is_floating_point():
            return {"reference": "none: other dtype"}
        return {
            "reference": "float64",
            "eager_err": float(left.ne(wide).sum()),
            "compiled_err": float(right.ne(wide).sum()),
            "worst": _worst((left.to(torch.float64) - right.to(torch.float64)).abs(), left, right, wide),
        }
    wide = wide.to(torch.float64)
    dtype = eager.dtype.to_real() if eager.is_complex() else eager.dtype
    info = torch.finfo(dtype)
    rounded = wide.to(dtype).to(torch.float64) if dtype is not torch.float64 else wide
    e, c = left.to(torch.float64), right.to(torch.float64)
    usable = rounded.isfinite()
    rms = _rms(torch.where(usable, rounded, torch.zeros_like(rounded)))
    # Small elements among large ones carry the rounding noise of the large ones: hence the floor at 1 % of the rms.
    scale = (info.eps * torch.maximum(wide.abs(), torch.full_like(wide, 0.01 * rms))).clamp(min=_smallest_step(info))
    eager_finite, compiled_finite = e.isfinite(), c.isfinite()
    eager_gap = torch.where(usable & eager_finite, (e - wide).abs() / scale, torch.zeros_like(e))
    compiled_gap = torch.where(usable & compiled_finite, (c - wide).abs() / scale, torch.zeros_like(c))
    classes = _value_class(e), _value_class(c), _value_class(rounded)
    compiled_wrong = (classes[0] == classes[2]) & (classes[1] != classes[2])
    eager_wrong = (classes[1] == classes[2]) & (classes[0] != classes[2])
    ranking = torch.where(compiled_wrong, torch.full_like(e, math.inf), compiled_gap - eager_gap)
    return {
        "reference": "float64",
        "eager_err": _largest(eager_gap),
        "compiled_err": _largest(compiled_gap),
        "excess_err": _largest(compiled_gap - 2 * eager_gap),
        "eager_rmse": _rms(eager_gap * scale),
        "compiled_rmse": _rms(compiled_gap * scale),
        "reference_rms": rms,
        "nan_reference": int(wide.isnan().sum()),
        "compiled_class_wrong": int(compiled_wrong.sum()),
        "eager_class_wrong": int(eager_wrong.sum()),
        "inf_flips": int((compiled_wrong & (classes[0] + classes[1] == 3) & ~e.isnan() & ~c.isnan()).sum()),
        "worst": _worst(ranking, left, right, wide),
    }


def _value_class(values: torch.Tensor) -> torch.Tensor:
    """0 finite, 1 +inf, 2 -inf, 3 NaN."""
    return values.isposinf().to(torch.int8) + 2 * values.isneginf().to(torch.int8) + 3 * values.isnan().to(torch.int8)


def _smallest_step(info: torch.finfo) -> float:
    """One ULP near zero, never zero itself."""
    return max(float(info.tiny) * float(info.eps), 5e-324)


def _largest(values: torch.Tensor) -> float:
    return float(values.nan_to_num(nan=0.0, posinf=1e308, neginf=0.0).max()) if values.numel() else 0.0


def _rms(values: torch.Tensor) -> float:
    return float(values.square().mean().sqrt()) if values.numel() else 0.0


def _worst(
    ranking: torch.Tensor, left: torch.Tensor, right: torch.Tensor, reference: torch.Tensor | None
) -> list[dict[str, Any]]:
    flat = ranking.reshape(-1).nan_to_num(nan=0.0)
    rows = []
    for position in torch.topk(flat, min(_WORST, flat.numel())).indices.tolist():
        index = [int(i) for i in torch.unravel_index(torch.tensor(position), ranking.shape)] if ranking.dim() else []
        row: dict[str, Any] = {"index": index}
        for name, values in (("eager", left), ("compiled", right), ("reference", reference)):
            if values is not None:
                row[name] = values.reshape(-1)[position].item()
        rows.append(row)
    return rows


def _same(eager: torch.Tensor, compiled: torch.Tensor, reference: Any) -> bool | None:
    """PyTorch's own accuracy rule with its default tolerances; None where it raises (float8, missing in old torch)."""
    from torch._dynamo.utils import same

    fp64 = reference.detach() if isinstance(reference, torch.Tensor) else None
    try:
        return bool(
            same(
                eager.detach(),
                compiled.detach(),
                fp64,
                equal_nan=True,
                log_error=lambda *args, **kwargs: None,
            )
        )
    except Exception:  # `same` asserts and raises in many ways on inputs it was not made for; None says so
        return None


def aliases(leaves: list[tuple[str, Any]]) -> list[list[str]]:
    """Groups of at least two paths whose tensors share memory, sorted.

    Parts of one buffer that lie apart (of a tensor that was split, say) share none: no write to one shows in the other.
    """
    spans: list[tuple[int, int, str]] = []
    for path, value in leaves:
        if isinstance(value, torch.Tensor) and value.layout is torch.strided and not value.is_quantized:
            try:
                start = value.data_ptr()
            except (RuntimeError, NotImplementedError):
                continue  # a subclass without storage
            if start and value.numel():
                last = sum((size - 1) * stride for size, stride in zip(value.shape, value.stride()))
                spans.append((start, start + (last + 1) * value.element_size(), path))
    groups: list[list[str]] = []
    reached = 0
    for start, end, path in sorted(spans):
        if start < reached:
            groups[-1].append(path)
        else:
            groups.append([path])
        reached = max(reached, end)
    return sorted(sorted(group) for group in groups if len(group) > 1)
