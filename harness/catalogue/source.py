"""Source text of recorded calls. Pure: no torch, so that both sides of the wire may use it.

A *record* of an argument is one of three maps:

- ``{"t": "tensor", "shape": [2, 3], "dtype": "float32", "low": -1.0, "high": 1.0, "grad": False,
  "layout": "contiguous" | "strided", "data": nested list}`` — ``data`` stands where the values matter (indices,
  lengths, masks, a positive definite matrix); without it any values within [low, high] serve. For complex dtypes
  the bounds are those of the real and of the imaginary part.
- ``{"t": "literal", "text": "(1, 2)"}`` — valid after ``import torch``.
- ``{"t": "list", "items": [record, …], "tuple": bool}`` — a list or tuple with a tensor somewhere inside.

A *call* is ``{"args": [record, …], "kwargs": {name: record}}``. A *form* is ``{"form": kind, "text": text}``:

============= ============================= =====================================================================
kind          text                          expression
============= ============================= =====================================================================
``function``  ``torch.amax``                ``torch.amax(x0, dim=-1)``
``method``    ``amax``                      ``x0.amax(dim=-1)``
``inplace``   ``abs_``                      ``x0.abs_()``
``out``       ``torch.abs``                 ``torch.abs(x0, out=o)``; ``o`` like the result of the function form
``module``    ``torch.nn.Conv2d(3, 4, 2)``  ``m(x0)`` where ``m`` was made by the text
``operator``  ``{0} + {1}``                 the text with the arguments filled in
``statement`` ``{0} += {1}``                the same, but no expression: it changes the first argument
============= ============================= =====================================================================

A form that holds only for some of its operator's calls lists their indices under ``calls``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

FLOATING = ("float16", "bfloat16", "float32", "float64", "float8_e4m3fn", "float8_e5m2")
COMPLEX = ("complex32", "complex64", "complex128")
FORMS = ("function", "method", "inplace", "out", "module", "operator", "statement")


class Bound(NamedTuple):
    """A call with its tensors taken out: ``inputs`` are (name, source text) to evaluate first."""

    inputs: list[tuple[str, str]]
    args: list[str]
    kwargs: dict[str, str]


def tensor_source(record: Mapping[str, Any], grad: bool | None = None) -> str:
    """An expression that makes a fresh tensor as recorded; ``grad`` overrides the record's ``grad``."""
    text = _strided(record) if _is_strided(record) else _values(record, list(record["shape"]))
    wanted = record.get("grad", False) if grad is None else grad
    if wanted and record["dtype"] in (*FLOATING, *COMPLEX):
        text += ".requires_grad_()"
    return text


def _is_strided(record: Mapping[str, Any]) -> bool:
    return record.get("layout") == "strided" and "data" not in record and len(record["shape"]) > 0


def _strided(record: Mapping[str, Any]) -> str:
    """The same shape without contiguity: dimensions reversed in memory, or every second element of a vector."""
    shape = list(record["shape"])
    if len(shape) == 1:
        return f"{_values(record, [2 * shape[0]])}[::2]"
    axes = ", ".join(str(axis) for axis in reversed(range(len(shape))))
    return f"{_values(record, shape[::-1])}.permute({axes})"


def _values(record: Mapping[str, Any], shape: list[int]) -> str:
    dtype, data = record["dtype"], record.get("data")
    if data is not None:
        return f"torch.tensor({_nested(data)}, dtype=torch.{dtype})"
    size, low, high = _tuple(shape), record.get("low", 0), record.get("high", 1)
    if dtype == "bool":
        return f"torch.randint(0, 2, {size}).bool()"
    if dtype in COMPLEX:
        real = f"torch.view_as_complex(torch.empty({_tuple([*shape, 2])}).uniform_({low}, {high}))"
        return real if dtype == "complex64" else f"{real}.to(torch.{dtype})"
    if dtype in FLOATING:
        real = f"torch.empty({size}).uniform_({low}, {high})"
        return real if dtype == "float32" else f"{real}.to(torch.{dtype})"
    whole = f"torch.randint({int(low)}, {int(high) + 1}, {size})"
    return whole if dtype == "int64" else f"{whole}.to(torch.{dtype})"


def _tuple(items: Sequence[int]) -> str:
    return f"({', '.join(map(str, items))}{',' if len(items) == 1 else ''})"


def _nested(data: Any) -> str:
    if isinstance(data, (list, tuple)):
        return f"[{', '.join(_nested(item) for item in data)}]"
    return repr(data)


def bind(call: Mapping[str, Any], grad: bool | None = None, prefix: str = "x") -> Bound:
    """Name the call's tensors ``x0, x1, …`` in order of appearance; everything else becomes text in place."""
    inputs: list[tuple[str, str]] = []

    def text(record: Mapping[str, Any]) -> str:
        if record["t"] == "literal":
            return str(record["text"])
        if record["t"] == "tensor":
            name = f"{prefix}{len(inputs)}"
            inputs.append((name, tensor_source(record, grad)))
            return name
        items = [text(item) for item in record["items"]]
        if record.get("tuple"):
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        return f"[{', '.join(items)}]"

    args = [text(record) for record in call["args"]]
    kwargs = {name: text(record) for name, record in call["kwargs"].items()}
    return Bound(inputs, args, kwargs)


def invocation(
    form: Mapping[str, Any], args: Sequence[str], kwargs: Mapping[str, str], out: str = "", module: str = ""
) -> str:
    """The expression (or statement) that applies a form to arguments given as text.

    ``out`` names the tensors to write to (form ``out``); ``module`` a module already made (form ``module``; else it
    is made in place).

    Raises:
        ValueError: the form has no text for such arguments: a method of something that is not a name, an operator
            given keywords or too few arguments.
    """
    kind, text = form["form"], form["text"]
    if kind in ("operator", "statement"):
        if kwargs:
            raise ValueError(f"{text} takes no keywords")
        try:
            return str(text).format(*args)
        except IndexError:
            raise ValueError(f"{text} needs more than {len(args)} arguments") from None
    keywords = [f"{name}={value}" for name, value in kwargs.items()]
    if kind in ("method", "inplace"):
        if not args or not args[0].isidentifier():
            raise ValueError(f".{text} needs a tensor as first argument")
        return f"{args[0]}.{text}({', '.join([*args[1:], *keywords])})"
    if kind == "out":
        keywords.append(f"out={out}")
    return f"{(module or text) if kind == 'module' else text}({', '.join([*args, *keywords])})"


def tensors(call: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """All tensor records of a call, also those inside lists, in order of appearance."""

    def walk(record: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
        if record["t"] == "tensor":
            yield record
        elif record["t"] == "list":
            for item in record["items"]:
                yield from walk(item)

    for record in [*call["args"], *call["kwargs"].values()]:
        yield from walk(record)


def retype(call: Mapping[str, Any], old: str, new: str) -> dict[str, Any]:
    """The same call with tensors and dtype literals of dtype ``old`` turned to ``new``, bounds made representable."""

    def turn(record: Mapping[str, Any]) -> dict[str, Any]:
        if record["t"] == "list":
            return {**record, "items": [turn(item) for item in record["items"]]}
        if record["t"] == "literal":
            return {**record, "text": f"torch.{new}"} if record["text"] == f"torch.{old}" else dict(record)
        if record["dtype"] != old:
            return dict(record)
        turned = {**record, "dtype": new}
        if "data" in turned:
            turned["data"] = _cast(turned["data"], new)
        if new not in (*FLOATING, *COMPLEX, "bool"):
            least = 0 if new.startswith("u") else -100
            low = max(least, min(100, int(record.get("low", 0))))
            turned["low"], turned["high"] = low, max(low, min(100, int(record.get("high", 1))))
        return turned

    kwargs = {name: turn(record) for name, record in call["kwargs"].items()}
    return {"args": [turn(record) for record in call["args"]], "kwargs": kwargs}


def _cast(data: Any, dtype: str) -> Any:
    if isinstance(data, list):
        return [_cast(item, dtype) for item in data]
    if dtype == "bool":
        return bool(data)
    if dtype in (*FLOATING, *COMPLEX):
        return float(data)
    return max(0 if dtype.startswith("u") else -100, min(100, int(data)))
