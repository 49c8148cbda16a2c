"""A program while it is being written: inputs, statements, and what is known of every live name."""

from __future__ import annotations

import itertools
import keyword
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

Facts = dict[str, Any]


def names() -> Iterator[str]:
    """a, b, … z, aa, ab, … without keywords and without names that would hide something."""
    hidden = {"fn", "torch", "l"}
    for length in itertools.count(1):
        for letters in itertools.product("abcdefghijklmnopqrstuvwxyz", repeat=length):
            name = "".join(letters)
            if not keyword.iskeyword(name) and name not in hidden:
                yield name


@dataclass
class Candidate:
    """One way to add a statement: inputs to make, lines to run, names they bind, catalogue operator used."""

    inputs: list[tuple[str, str]]
    lines: list[str]
    target: str  # the name that holds the result; empty for a statement without one
    reads: tuple[str, ...]
    binds: tuple[str, ...]  # every name that its inputs and lines bind
    operator: str
    random: bool = False
    written: str = ""  # the name it writes in place, if any: that cannot be taken back once it ran

    def text(self) -> str:
        return "\n".join([*(f"{name} = {source}" for name, source in self.inputs), *self.lines])


@dataclass
class Draft:
    """What is written so far. ``live`` maps names to the probe's facts; ``read`` are names that something uses."""

    mode: str = "forward"
    inputs: list[tuple[str, str]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    live: dict[str, Facts] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # names in the order in which statements bound them
    read: set[str] = field(default_factory=set)
    operators: list[str] = field(default_factory=list)
    random: bool = False
    _names: Iterator[str] = field(default_factory=names)

    def fresh_names(self, count: int) -> list[str]:
        """Names for a candidate. They are taken only by ``accept``; refused candidates leave gaps nowhere."""
        taken = {name for name, _ in self.inputs} | set(self.live)
        free = (name for name in names() if name not in taken)
        return list(itertools.islice(free, count))

    def accept(self, candidate: Candidate, facts: dict[str, Facts]) -> None:
        """Take a candidate that held, with the facts of what it bound or changed."""
        self.inputs += candidate.inputs
        self.body += candidate.lines
        own = {*candidate.binds, candidate.written}
        self.live.update({name: known for name, known in facts.items() if name in own})
        self.read.update(candidate.reads)
        if candidate.written and not candidate.target:
            # The new value of what was written has no reader yet.
            self.read.discard(candidate.written)
            if candidate.written not in self.order:
                self.order.append(candidate.written)
        if candidate.target:
            self.order.append(candidate.target)
        self.operators.append(candidate.operator)
        self.random |= candidate.random

    def unpack(self, target: str, parts: list[str], facts: list[Facts]) -> None:
        """``d = f(x)`` that gave a tuple becomes ``e, f = f(x)``."""
        self.body[-1] = self.body[-1].replace(f"{target} = ", f"{', '.join(parts)} = ", 1)
        self.live.pop(target, None)
        self.order.remove(target)
        self.order += parts
        self.live.update(zip(parts, facts))

    def tensors(self) -> list[tuple[str, Facts]]:
        """Live tensors, inputs included, the latest last."""
        return [(name, facts) for name, facts in self.live.items() if facts.get("kind") == "tensor"]

    def results(self) -> list[str]:
        """What the function returns: everything that a statement bound and nothing reads, in order."""
        unread = [name for name in self.order if name not in self.read and name in self.live]
        return unread or self.order[-1:] or [name for name, _ in self.inputs[:1]]

    def text(self, meta: dict[str, Any], returns: list[str], build2: str = "") -> str:
        """The whole program. ``META`` is written from ``meta``; ``build2`` is the text of a second builder."""
        inputs = [name for name, _ in self.inputs]
        build = _builder("build_inputs", self.inputs, inputs)
        body = "".join(f"    {line}\n" for statement in self.body for line in statement.splitlines())
        function = f"def fn({', '.join(inputs)}):\n{body}    return {_result(returns)}\n"
        parts = [f"import torch\n\nMETA = {_literal(meta)}", build, *([build2] if build2 else []), function]
        return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def _builder(name: str, inputs: list[tuple[str, str]], returned: list[str]) -> str:
    lines = "".join(f"    {target} = {source}\n" for target, source in inputs)
    return f"def {name}():\n    torch.manual_seed(0)\n{lines}    return {_tuple(returned)}\n"


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else ", ".join(items) or "()"


def _result(items: list[str]) -> str:
    return ", ".join(items)


def _literal(value: Any) -> str:
    """A literal with double quotes, as the formatter of the project would write it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_literal(key)}: {_literal(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(_literal(item) for item in value) + "]"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return repr(value)
