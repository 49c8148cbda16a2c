"""Recorded calls of a script as programs: chains along the real data flow, and single calls."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.engines.statement import RANDOM_CALLS
from fuzzer.engines.writer import render_meta
from fuzzer.program import Program, ProgramError

#: Calls of one chain at most, elements of all its inputs at most, programs of one script at most.
_CHAIN = 6
_ELEMENTS = 1_000_000
_PROGRAMS = 400
_ALIKE = 4  # programs of the same operators in the same order, for other shapes or options
#: Sizes below this are no reason for a program's being large.
_SMALL = 16

_BINARY = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@",
    "and": "&", "or": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq": "==", "ne": "!=",
}  # fmt: skip
_UNARY = {"neg": "-", "invert": "~", "pos": "+"}
_FLOATING = ("float16", "bfloat16", "float32", "float64")
_WHOLE = re.compile(r"(?<![\w.\-])\d+(?![\w.])")


@dataclass(frozen=True)
class Call:
    """One recorded call; see ``harness.tracing`` for the arguments."""

    number: int
    op: str
    args: tuple[dict[str, Any], ...]
    kwargs: dict[str, dict[str, Any]]
    no_grad: bool = False

    @property
    def tensors(self) -> Iterator[dict[str, Any]]:
        for argument in [*self.args, *self.kwargs.values()]:
            yield from _tensors(argument)

    @property
    def producers(self) -> list[int]:
        return sorted({int(record["from"][0]) for record in self.tensors if "from" in record})

    @property
    def shape(self) -> str:
        """What the call looks like without its tensors' origin."""
        hidden = ("from", "leaf", "low", "high")
        plain = [[_without(item, hidden) for item in self.args], _without(self.kwargs, hidden)]
        return f"{self.op} {json.dumps(plain, sort_keys=True)}"


@dataclass
class Recording:
    calls: list[Call] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)  # empty: the script was killed


def read_recording(path: Path) -> Recording:
    """The calls of a record file; a torn last line is dropped."""
    recording = Recording()
    for line in path.read_text("utf-8").splitlines():
        try:
            item = json.loads(line)
        except ValueError:
            continue
        if "end" in item:
            recording.end = item["end"]
        else:
            args, no_grad = tuple(item["args"]), item.get("no_grad", False)
            recording.calls.append(Call(item["n"], item["op"], args, item["kwargs"], no_grad))
    return recording


def programs_of(recording: Recording, script: str) -> list[Program]:
    """Chains that together hold every call, then single calls; distinct, at most ``_PROGRAMS``."""
    calls = {call.number: call for call in recording.calls}
    groups = [*_chains(calls), *([call] for call in recording.calls)]
    programs: list[Program] = []
    seen: set[str] = set()
    count: Counter[str] = Counter()
    for group in groups:
        if len(programs) >= _PROGRAMS:
            break
        exact, alike = " ; ".join(call.shape for call in group), " ".join(call.op for call in group)
        program = (
            write_program(group, script, len(programs) + 1) if exact not in seen and count[alike] < _ALIKE else None
        )
        seen.add(exact)
        if program is not None:
            count[alike] += 1
            programs.append(program)
    return programs


def _chains(calls: Mapping[int, Call]) -> Iterator[list[Call]]:
    """From the last call backwards: a call not yet in a chain, with its nearest producers, in their order."""
    covered: set[int] = set()
    for number in sorted(calls, reverse=True):
        if number in covered or not calls[number].producers:
            continue
        chain = {number}
        frontier = [number]
        while frontier and len(chain) < _CHAIN:
            for producer in reversed(calls[frontier.pop(0)].producers):
                if producer in calls and producer not in chain and len(chain) < _CHAIN:
                    chain.add(producer)
                    frontier.append(producer)
        covered |= chain
        if len(chain) > 1:
            yield [calls[item] for item in sorted(chain)]


def write_program(group: Sequence[Call], script: str, number: int) -> Program | None:
    """A program of these calls, made in this order; None where they have no tensor, or no text."""
    numbers = {call.number for call in group}
    no_grad = any(call.no_grad for call in group)
    writer = _Writer(numbers, _scaled(group, numbers), no_grad)
    lines = [line for call in group if (line := writer.line(call)) is not None]
    if len(lines) != len(group) or not writer.inputs or not writer.results:
        return None
    meta: dict[str, Any] = {"mode": "backward" if writer.grad else "forward", "engine": "trace"}
    meta["title"] = " → ".join(call.op.rsplit(".", 1)[-1].strip("_") for call in group)
    meta["source"] = script
    if no_grad:
        meta["no_grad"] = True
    if any(call.op.rsplit(".", 1)[-1] in RANDOM_CALLS for call in group):
        meta["random"] = True
    build = ["def build_inputs():", "    torch.manual_seed(0)"]
    build += [f"    {name} = {text}" for name, text in writer.inputs.values()]
    names = [name for name, _text in writer.inputs.values()]
    build.append(f"    return {names[0]}," if len(names) == 1 else f"    return {', '.join(names)}")
    results = ", ".join(writer.results)
    body = [f"def fn({', '.join(names)}):", *(f"    {line}" for line in lines), f"    return {results}"]
    text = "\n\n\n".join(["import torch\n\n" + render_meta(meta), "\n".join(build), "\n".join(body)]) + "\n"
    try:
        return Program.parse(text, f"{script}::{number:03d} {meta['title'].replace(' → ', '_')}")
    except ProgramError:
        return None


class _Writer:
    """Names and text of one program. ``results`` are the names that no later call read, in order."""

    def __init__(self, numbers: set[int], sizes: Mapping[int, int], no_grad: bool) -> None:
        self.numbers = numbers
        self.sizes = sizes
        self.no_grad = no_grad
        self.inputs: dict[str, tuple[str, str]] = {}
        self.results: list[str] = []
        self.grad = False
        self._made: dict[int, str] = {}
        self._count = 0

    def line(self, call: Call) -> str | None:
        """The statement of a call."""
        try:
            args = [self._argument(item) for item in call.args]
            kwargs = {name: self._argument(item) for name, item in call.kwargs.items()}
        except KeyError:
            return None
        text = expression(call.op, args, kwargs)
        if text is None:
            return None
        name = self._fresh()
        self._made[call.number] = name
        if call.op.endswith("__setitem__"):
            if args[0] not in self.results:
                self.results.append(args[0])
            return text
        self.results.append(name)
        return f"{name} = {text}"

    def _fresh(self) -> str:
        letters = "abcdefghijklmnopqrstuvwxyz"
        name = letters[self._count % 26] + (str(self._count // 26) if self._count >= 26 else "")
        self._count += 1
        return name

    def _argument(self, record: Mapping[str, Any]) -> str:
        if record["t"] == "literal":
            return self._resized(str(record["text"]))
        if record["t"] == "list":
            items = [self._argument(item) for item in record["items"]]
            if record["tuple"]:
                return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
            return f"[{', '.join(items)}]"
        origin = record.get("from")
        if origin is not None and origin[0] in self.numbers:
            name = self._made[int(origin[0])]
            if name in self.results:
                self.results.remove(name)
            return name if origin[1] < 0 else f"{name}[{origin[1]}]"
        key = f"leaf {record['leaf']}" if "leaf" in record else f"from {origin}"
        if key not in self.inputs:
            grad = bool(record.get("grad")) and not self.no_grad and record["dtype"] in _FLOATING
            self.inputs[key] = (self._fresh(), tensor_text(record, self.sizes) + (".requires_grad_()" if grad else ""))
            self.grad |= grad
        return self.inputs[key][0]

    def _resized(self, text: str) -> str:
        if not self.sizes or text[:1] in "\"'":
            return text
        return _WHOLE.sub(lambda number: str(self.sizes.get(int(number[0]), int(number[0]))), text)


def expression(op: str, args: Sequence[str], kwargs: Mapping[str, str]) -> str | None:
    """A call as a person writes it: operators, subscripts, methods, functions. None where it has no text."""
    given = ", ".join([*args, *(f"{name}={value}" for name, value in kwargs.items())])
    if not op.startswith("torch.Tensor."):
        name = _public(op)
        return f"{name}({given})" if name else None
    name = op.removeprefix("torch.Tensor.")
    plain = name.strip("_") if name.startswith("__") else ""
    if plain in ("getitem", "setitem") and len(args) > 1:
        subscript = f"{args[0]}[{_index(args[1])}]"
        return subscript if plain == "getitem" else f"{subscript} = {args[2]}"
    if plain in _BINARY and len(args) == 2:
        return f"{args[0]} {_BINARY[plain]} {args[1]}"
    if plain[:1] == "r" and plain[1:] in _BINARY and len(args) == 2:
        return f"{args[1]} {_BINARY[plain[1:]]} {args[0]}"
    if plain[:1] == "i" and plain[1:] in _BINARY and len(args) == 2:
        return f"{args[0]}.{plain[1:].replace('truediv', 'div')}_({args[1]})"
    if plain in _UNARY and len(args) == 1:
        return f"{_UNARY[plain]}{args[0]}"
    if plain or not args:
        return None
    if name in ("T", "mT", "H", "mH", "real", "imag"):
        return f"{args[0]}.{name}"
    rest = ", ".join([*args[1:], *(f"{key}={value}" for key, value in kwargs.items())])
    return f"{args[0]}.{name}({rest})"


def _public(op: str) -> str:
    """The name by which a program calls it; "" for a private one."""
    for private, public in (
        ("torch._C._nn.", "torch.nn.functional."),
        ("torch._C._linalg.linalg_", "torch.linalg."),
        ("torch._C._fft.fft_", "torch.fft."),
        ("torch._C._special.special_", "torch.special."),
        ("torch._VariableFunctions.", "torch."),
        ("torch._C._VariableFunctions.", "torch."),
    ):
        if op.startswith(private):
            op = public + op.removeprefix(private)
    return op if op.startswith("torch.") and "._C." not in op else ""


def _index(text: str) -> str:
    """``(slice(None, 3, None), ...)`` → ``:3, ...``"""
    text = re.sub(r"slice\((-?\w+), (-?\w+), (-?\w+)\)", _slice, text)
    if text.startswith("(") and text.endswith(")") and len(text) > 2:
        return text[1:-1]
    return text


def _slice(found: re.Match[str]) -> str:
    start, stop, step = ("" if part == "None" else part for part in found.groups())
    return f"{start}:{stop}" + (f":{step}" if step else "")


def tensor_text(record: Mapping[str, Any], sizes: Mapping[int, int]) -> str:
    """An expression for a fresh tensor: its shape (with ``sizes`` replaced), strides, dtype and range of values."""
    shape = [sizes.get(size, size) for size in record["shape"]]
    order = _order(record["shape"], record["stride"])
    expanded = [i for i, (size, step) in enumerate(zip(shape, record["stride"])) if step == 0 and size > 1]
    base = [1 if i in expanded else size for i, size in enumerate(shape)]
    if order is None or order == list(range(len(shape))):
        text = _values(record, base, sizes)
    else:
        back = [order.index(axis) for axis in range(len(shape))]
        text = f"{_values(record, [base[axis] for axis in order], sizes)}.permute({', '.join(map(str, back))})"
    if expanded:
        text += f".expand({', '.join(map(str, shape))})"
    return text


def _order(shape: Sequence[int], stride: Sequence[int]) -> list[int] | None:
    """The order of dimensions in memory, outermost first; None where the memory is not dense."""
    axes = sorted((axis for axis in range(len(shape))), key=lambda axis: -stride[axis] if shape[axis] > 1 else 0)
    expected = 1
    for axis in reversed([axis for axis in axes if shape[axis] > 1 and stride[axis]]):
        if stride[axis] != expected:
            return None
        expected *= shape[axis]
    moving = [axis for axis in axes if shape[axis] > 1 and stride[axis]]
    if moving == sorted(moving):
        return list(range(len(shape)))
    still = [axis for axis in range(len(shape)) if axis not in moving]
    return [*still, *moving]


def _values(record: Mapping[str, Any], shape: Sequence[int], sizes: Mapping[int, int]) -> str:
    dtype, low, high = record["dtype"], record.get("low"), record.get("high")
    size = f"({shape[0]},)" if len(shape) == 1 else f"({', '.join(map(str, shape))})"
    if dtype == "bool":
        return f"torch.randint(0, 2, {size}).bool()"
    if dtype in _FLOATING:
        suffix = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        if low is not None and high is not None and low == high:
            return f"torch.full({size}, {low}{suffix})"
        if low is not None and high is not None and low >= 0:
            return f"torch.empty({size}{suffix}).uniform_({low}, {high})"
        return f"torch.randn({size}{suffix})"
    if dtype.startswith("complex"):
        return f"torch.randn({size}, dtype=torch.{dtype})"
    low, high = (0, 1) if low is None or high is None else (int(low), int(high))
    for before, after in sizes.items():  # an index into what has become smaller
        high = min(high, after - 1) if before > high >= after else high
    return f"torch.randint({min(low, high)}, {high + 1}, {size}, dtype=torch.{dtype})"


def _scaled(group: Sequence[Call], numbers: set[int]) -> dict[int, int]:
    """Sizes to replace so that all inputs together stay below a million elements; {} where they do already."""
    shapes = [
        record["shape"] for call in group for record in call.tensors if record.get("from", [-1])[0] not in numbers
    ]
    sizes: dict[int, int] = {}
    while sum(_numel([sizes.get(size, size) for size in shape]) for shape in shapes) > _ELEMENTS:
        largest = max((size for shape in shapes for size in shape), key=lambda size: sizes.get(size, size), default=0)
        now = sizes.get(largest, largest)
        if now <= _SMALL:
            break
        sizes[largest] = max(_SMALL, now // 2)
    return sizes


def _numel(shape: Sequence[int]) -> int:
    number = 1
    for size in shape:
        number *= size
    return number


def _tensors(record: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if record["t"] == "tensor":
        yield dict(record)
    for item in record.get("items", ()):
        yield from _tensors(item)


def _without(value: Any, hidden: Sequence[str]) -> Any:
    if isinstance(value, dict):
        return {key: _without(item, hidden) for key, item in value.items() if key not in hidden}
    return [_without(item, hidden) for item in value] if isinstance(value, list) else value
