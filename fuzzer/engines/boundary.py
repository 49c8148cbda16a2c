"""Arguments at their limits: for each number of a recorded call, the values around what the operator's schema and the
shapes at hand allow, also those that eager refuses.

Nothing is said here of which values hold; a probe says that. What would be undefined, or would allocate without end,
is left out: amounts to shift by, extremes where a size is asked, positions in memory (``as_strided``).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from fuzzer.engines.mutate.tables import ALLOCATING
from fuzzer.engines.statement import words
from fuzzer.knowledge.operators import Call, Literal, Operator

INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)

_DIMS = words("dim dims dim0 dim1 dim2 axis axes axis0 axis1 start_dim end_dim source destination dim_self batch_dim")
#: A position or an amount within a dimension: extremes cost nothing.
_POSITIONS = words("index start end step diagonal offset shifts k sections indices chunks split_size")
_UNBOUNDED = words("index start end diagonal offset shifts k ignore_index")
#: Numbers that stand for something else.
_CODES = words("generator interpolation_mode padding_mode from high num_samples n_fft seed reduction")
_SIZES = words(
    "size shape sizes output_size repeats kernel_size length n s num_classes minlength bins N M m steps"
    " split_size_or_sections upscale_factor downscale_factor num_groups groups dimension"
)
#: Of sliding windows.
_WINDOWS = words("stride dilation padding output_padding pad")
_FLAGS = words(
    "ceil_mode count_include_pad align_corners keepdim unbiased largest sorted descending stable reverse upper"
    " hermitian include_self right return_complex center normalized onesided antialias rounding increasing"
)
_UNTOUCHED = re.compile(r"shift|<<|>>|as_strided|set_\b|resize|empty")
_PARAMETER = re.compile(r"(?P<type>[A-Za-z]+(?:\[\d*\])?\??)(?:\([a-z!]\))?(?:\[\])?\??\s+(?P<name>\w+)")
#: May be infinite, NaN or beyond their interval.
_FLOATS = ("0.0", "-1.0", "1.0", "1e30", 'float("inf")', 'float("nan")')


@dataclass(frozen=True)
class Limit:
    """One argument at a limit. ``place``: its position, or its keyword; ``text`` its new source text."""

    place: int | str
    name: str  # of the parameter; "" where the schema does not tell
    text: str
    about: str  # dim | position | size | window | flag | number | extreme
    call: Call  # the recorded call with it


def limits(operator: Operator, call: Call) -> list[Limit]:
    """Every limit of every literal argument of a call, one changed at a time; [] for operators that are left alone."""
    forms = " ".join([operator.name, *(form.text for form in operator.forms)])
    if _UNTOUCHED.search(forms):
        return []
    shape = call.tensors[0].shape if call.tensors else ()
    allocating = operator.name.rpartition(".")[2] in ALLOCATING or not call.tensors
    found = []
    for place, name, kind, text in _literals(operator, call):
        for new, about in _values(name, kind, text, shape, allocating):
            if new != text:
                found.append(Limit(place, name, new, about, _with(call, place, new)))
    return found


def _with(call: Call, place: int | str, text: str) -> Call:
    if isinstance(place, str):
        return replace(call, kwargs={**call.kwargs, place: Literal(text)})
    return replace(call, args=(*call.args[:place], Literal(text), *call.args[place + 1 :]))


def _literals(operator: Operator, call: Call) -> Iterator[tuple[int | str, str, str, str]]:
    """(place, parameter, its type, text) of the literal arguments."""
    parameters = _schema_of(operator, call)
    types = dict(parameters)
    for position, argument in enumerate(call.args):
        if isinstance(argument, Literal):
            name, kind = parameters[position] if position < len(parameters) else ("", "")
            yield position, name, kind, argument.text
    for name, argument in call.kwargs.items():
        if isinstance(argument, Literal):
            yield name, name, types.get(name, ""), argument.text


def _schema_of(operator: Operator, call: Call) -> tuple[tuple[str, str], ...]:
    """Parameters of the first overload that has as many and those keywords; tensors must stand where the call has
    some. Empty where none fits."""
    for text in operator.schema:
        parameters = _parameters(text)
        if len(parameters) < len(call.args) or not set(call.kwargs) <= {name for name, _ in parameters}:
            continue
        pairs = zip(call.args, parameters)
        if all(isinstance(argument, Literal) != kind.startswith("Tensor") for argument, (_, kind) in pairs):
            return parameters
    return ()


@lru_cache(maxsize=4096)
def _parameters(schema: str) -> tuple[tuple[str, str], ...]:
    """(name, type) of the parameters of ``aten::topk(Tensor self, SymInt k, int dim=-1) -> …``."""
    inside = schema.partition("(")[2].rpartition(") ->")[0]
    found = []
    for part in _split(inside):
        match = _PARAMETER.match(part.strip())
        if match:
            found.append((match["name"], match["type"]))
    return tuple(found)


def _split(text: str) -> list[str]:
    """At commas outside brackets."""
    parts, depth, start = [], 0, 0
    for index, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and not depth:
            parts.append(text[start:index])
            start = index + 1
    return [*parts, text[start:]]


def _values(name: str, kind: str, text: str, shape: Sequence[int], allocating: bool) -> Iterator[tuple[str, str]]:
    """(text, about) of the values around the limits of one argument."""
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return
    if isinstance(value, bool):
        if name in _FLAGS or kind.startswith("bool"):
            yield str(not value), "flag"
        return
    if isinstance(value, (tuple, list)):
        yield from _tuples(name, list(value), shape)
    elif isinstance(value, int) and name not in _CODES:
        whole = not kind.startswith(("Scalar", "float"))
        for number, about in _integers(name, value, shape, allocating, whole):
            yield str(number), about
    elif isinstance(value, float):
        for option in _FLOATS[:3] if allocating else _FLOATS:
            yield option, "extreme" if "(" in option or "e" in option else "number"


def _integers(name: str, value: int, shape: Sequence[int], allocating: bool, whole: bool) -> Iterator[tuple[int, str]]:
    rank, longest = len(shape), max(shape, default=1)
    if name in _DIMS:
        yield from ((number, "dim") for number in dict.fromkeys((-1, 0, -rank, rank - 1, rank, -rank - 1, -rank - 44)))
    elif name in _WINDOWS:
        yield from ((number, "window") for number in (0, 1, 2, 3, -1))
    elif name in _SIZES or (allocating and whole):
        yield from ((number, "size") for number in dict.fromkeys((0, 1, longest, longest + 1, -1)))
    elif name in _POSITIONS or whole:
        size = shape[-1] if shape else 1
        near = dict.fromkeys((0, 1, -1, size - 1, size, size + 1, -size, -size - 1))
        yield from ((number, "position") for number in near)
        if not allocating and name in _UNBOUNDED:
            yield from ((number, "extreme") for number in (INT64_MAX, INT64_MIN))
    else:
        yield from ((number, "number") for number in (0, 1, -1, value + 1))


def _tuples(name: str, items: list[object], shape: Sequence[int]) -> Iterator[tuple[str, str]]:
    """Tuples of whole numbers: one item at a limit, one item fewer, for dimensions one twice."""
    if not items or not all(type(item) is int for item in items):
        return
    numbers = [item for item in items if isinstance(item, int)]
    rank = len(shape)
    if name in _DIMS:
        yield _tuple([numbers[0], numbers[0] - rank if numbers[0] >= 0 else numbers[0] + rank]), "dim"
        yield _tuple([*numbers[:-1], rank]), "dim"
        yield _tuple([number - rank if number >= 0 else number + rank for number in numbers]), "dim"
        yield "()", "dim"
        return
    about = "window" if name in _WINDOWS else "size"
    for number in (0, 1, -1, -2) if about == "window" else (0, 1, -1):
        yield _tuple([*numbers[:-1], number]), about
    if len(numbers) > 1:
        yield _tuple(numbers[:-1]), about


def _tuple(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))}{',' if len(numbers) == 1 else ''})"


__all__ = ["INT64_MAX", "INT64_MIN", "Limit", "limits"]
