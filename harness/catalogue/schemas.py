"""Candidates from the dispatcher's own list of operators, for those that no database covers.

Nothing tells what arguments they want, so a handful of small tensors is tried.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from typing import Any

import torch

from harness.catalogue.measure import Candidate, DroppedError
from harness.catalogue.record import run

#: Combinations of arguments tried per overload, and those kept of the ones that run.
MOST_TRIES = 160
MOST_FOUND = 4

#: Private, of other devices and layouts, with effects outside their result, or internal steps of another operator
#: (gradients check their arguments less: an inconsistent call reads out of bounds).
_EXCLUDED = re.compile(
    r"^_|_$|backward|cudnn|miopen|cuda|mkldnn|mps|vulkan|sparse|_cs[rc]|_bs[rc]|coo|nested|quant|^q_|fbgemm|from_file"
    r"|record_|sym_|^sym|assert|resize|^set|rename|refine|align_|names|data_ptr|pin|padded|dense_dim|retain"
    r"|storage|batch_norm_|_copy_to|is_set_to|grad|version|infinitely|dim_order|lift|crow|ccol|row_indices"
    r"|col_indices|values$|indices_copy|^jit|rowwise|matmul_|linear_.*(fp16|int8)|choose_qparams|wrapped|^dequant|unsafe_chunk"
    r"|^as_tensor|^cpu$|^data$|^to_dense|_inverse$|embedding_renorm|powsum|dense_tensors"
)

_TENSORS: dict[str, tuple[str, tuple[int, ...]]] = {
    "matrix": ("float32", (3, 3)),
    "flat": ("float32", (2, 3)),
    "vector": ("float32", (4,)),
    "cube": ("float32", (2, 3, 4)),
    "image": ("float32", (1, 2, 4, 4)),
    "volume": ("float32", (1, 2, 4, 4, 4)),
    "whole": ("int64", (3,)),
    "scalar": ("float32", ()),
    "mask": ("bool", (2, 3)),
    "complex": ("complex64", (3, 3)),
}

_NUMBERS: dict[str, list[str]] = {
    "int": ["0", "1", "2"],
    "number": ["2", "0.5"],
    "float": ["0.5", "1.0"],
    "bool": ["False", "True"],
    "List[int]": ["[0]", "[1]", "[1, 1]", "[2, 2]", "[0, 1]", "[1, 1, 1]"],
    "List[float]": ["[1.0, 1.0]"],
}


def jobs(covered: set[str]) -> list[Any]:
    """Functions that make a ``Candidate`` each, for packets (``"amax"``) that are not in ``covered``."""
    packets: dict[str, list[Any]] = {}
    for schema in torch._C._jit_get_all_schemas():
        namespace, _, name = schema.name.partition("::")
        if namespace == "aten" and name not in covered and not _EXCLUDED.search(name) and _plain(schema):
            packets.setdefault(name, []).append(schema)
    return [functools.partial(_candidate, name, schemas) for name, schemas in sorted(packets.items())]


def _plain(schema: Any) -> bool:
    """Functional, from tensors and simple numbers to tensors."""
    if schema.is_mutable or not any(str(result.type) == "Tensor" for result in schema.returns):
        return False
    required = [argument for argument in schema.arguments if not argument.has_default_value()]
    kinds = [str(argument.type) for argument in required]
    known = {"Tensor", "List[Tensor]", *_NUMBERS}
    return "Tensor" in " ".join(kinds) and all(kind in known or kind.startswith("Optional") for kind in kinds)


def _candidate(name: str, schemas: list[Any]) -> Candidate:
    for schema in schemas:
        overload = schema.overload_name or "default"
        form = {"form": "function", "text": f"torch.ops.aten.{name}.{overload}"}
        calls = list(itertools.islice(_running(form, _trials(schema)), MOST_FOUND))
        if calls:
            more = [{"form": "method", "text": name}] if callable(getattr(torch.Tensor, name, None)) else []
            if callable(getattr(torch.Tensor, f"{name}_", None)):
                more.append({"form": "inplace", "text": f"{name}_"})
            more = [*_named(name), *more]
            main = next((record["dtype"] for record in calls[0]["args"] if record["t"] == "tensor"), "float32")
            variant = "" if overload == "default" else overload
            return Candidate(f"aten.{name}", variant, [form], more, calls, main, schema_names=[name])
    raise DroppedError("none of the tried calls runs")


def _named(name: str) -> list[dict[str, Any]]:
    """The function that users write for it: ``torch.absolute``, ``torch.special.erf``, ``torch.linalg.matmul``."""
    module, _, rest = name.partition("_")
    places = [(torch, "torch", name), (torch.nn.functional, "torch.nn.functional", name)]
    if module in ("special", "linalg", "fft"):
        places.append((getattr(torch, module), f"torch.{module}", rest))
    return [
        {"form": "function", "text": f"{path}.{attribute}"}
        for owner, path, attribute in places
        if callable(getattr(owner, attribute, None))
    ]


def _running(form: dict[str, Any], trials: Iterable[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    for call in itertools.islice(trials, MOST_TRIES):
        try:
            run(form, call)
        except Exception:  # a wrong guess is refused in any way the operator likes
            continue
        yield call


def _trials(schema: Any) -> Iterable[dict[str, Any]]:
    """Calls to try: all tensors of one shape first, then the later ones as integers of the first's shape."""
    required = [argument for argument in schema.arguments if not argument.has_default_value()]
    numbers = [
        _NUMBERS.get(str(argument.type), ["None"]) for argument in required if "Tensor" not in str(argument.type)
    ]
    for values in itertools.product(*numbers):
        for tensor, indexed in itertools.product(_TENSORS, (False, True)):
            if indexed and sum(str(argument.type) == "Tensor" for argument in required) < 2:
                continue
            yield _call(required, tensor, indexed, list(values))


def _call(required: list[Any], tensor: str, indexed: bool, values: list[str]) -> dict[str, Any]:
    call: dict[str, Any] = {"args": [], "kwargs": {}}
    for argument in required:
        kind = str(argument.type)
        first = not call["args"]
        record: dict[str, Any]
        if kind == "Tensor":
            record = _tensor(tensor, indexed and not first)
        elif kind == "List[Tensor]":
            record = {"t": "list", "items": [_tensor(tensor, False), _tensor(tensor, False)], "tuple": False}
        elif "Tensor" in kind:
            record = {"t": "literal", "text": "None"}
        else:
            record = {"t": "literal", "text": values.pop(0)}
        if argument.kwarg_only:
            call["kwargs"][argument.name] = record
        else:
            call["args"].append(record)
    return call


def _tensor(kind: str, indexed: bool) -> dict[str, Any]:
    dtype, shape = _TENSORS[kind]
    if indexed:
        dtype = "int64"
    low, high = (0, 1) if dtype in ("int64", "bool") else (-2.0, 2.0)
    record = {"t": "tensor", "shape": list(shape), "dtype": dtype, "low": low, "high": high}
    return {**record, "grad": False, "layout": "contiguous"}
