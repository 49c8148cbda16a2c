"""A program while it is being written: inputs, statements, and what is known of every live name."""

from __future__ import annotations

import itertools
import keyword
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.engines.statement import literal
from fuzzer.engines.writer import broken, render_meta

Facts = dict[str, Any]

#: While a program is written its names are ``_1_``, ``_2_``, …, which nothing else is called: so the final names can
#: be given by plain replacement of text, in the order in which a reader meets them.
_WORKING = re.compile(r"\b_\d+_\b")
_LETTER = re.compile(r"(?<![\w.])[a-z]\b(?!=)")


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
    results: tuple[str, ...] = ()  # further names to return unless something reads them
    helper: str = ""  # text at module level that the lines need
    meta: dict[str, Any] = field(default_factory=dict)  # entries of META that the lines need
    scoped: bool = False  # the lines hold only inside a function
    kept: bool = False  # its result is returned even where something reads it
    connected: bool = False  # reads a tensor that is already there

    def text(self) -> str:
        """What a probe executes."""
        lines = self.lines
        if self.scoped:
            bound = [name for name in self.binds if name not in dict(self.inputs)]
            body = "\n".join(f"    {line}" for text in lines for line in text.splitlines())
            lines = [f"def _scope():\n{body}\n    return ({', '.join(bound)},)", f"({', '.join(bound)},) = _scope()"]
        return "\n".join(
            [*([self.helper] if self.helper else []), *(f"{name} = {source}" for name, source in self.inputs), *lines]
        )


@dataclass
class Draft:
    """What is written so far. ``live`` maps names to the probe's facts; ``read`` are names that something uses."""

    mode: str = "forward"
    inputs: list[tuple[str, str]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    live: dict[str, Facts] = field(default_factory=dict)
    order: list[str] = field(default_factory=list)  # names in the order in which statements bound them
    read: set[str] = field(default_factory=set)
    depth: dict[str, int] = field(default_factory=dict)  # statements on the longest path to a name
    operators: list[str] = field(default_factory=list)
    helpers: list[str] = field(default_factory=list)
    meta: dict[str, Any] = field(default_factory=dict)
    random: bool = False
    as_dict: bool = False  # the function returns a dictionary
    seed: int = 0  # of ``build_inputs``
    kept: set[str] = field(default_factory=set)  # returned even where something reads it
    _count: int = 0

    def fresh_names(self, count: int) -> list[str]:
        """Working names, never given before."""
        self._count += count
        return [f"_{number}_" for number in range(self._count - count + 1, self._count + 1)]

    def accept(self, candidate: Candidate, facts: dict[str, Facts]) -> None:
        """Take a candidate that held, with the facts of what it bound or changed."""
        self.inputs += candidate.inputs
        self.body += candidate.lines
        own = {*candidate.binds, candidate.written}
        self.live.update({name: known for name, known in facts.items() if name in own})
        self.read.update(candidate.reads)
        below = max((self.depth.get(name, 0) for name in candidate.reads), default=0)
        if candidate.written and not candidate.target:
            # The new value of what was written has no reader yet.
            self.read.discard(candidate.written)
            self.depth[candidate.written] = below + 1
            if candidate.written not in self.order:
                self.order.append(candidate.written)
        for name in dict.fromkeys((candidate.target, *candidate.results)):
            if name:
                self.order.append(name)
                self.depth[name] = below + len(candidate.lines)
        if candidate.operator:
            self.operators.append(candidate.operator)
        self.random |= candidate.random
        if candidate.kept:
            self.kept.add(candidate.target)
        if candidate.helper and candidate.helper not in self.helpers:
            self.helpers.append(candidate.helper)
        self.merge(candidate.meta)

    def merge(self, meta: dict[str, Any]) -> None:
        """Further entries of META; dictionaries and lists join."""
        for key, value in meta.items():
            if isinstance(value, list):
                value = [*self.meta.get(key, ()), *(item for item in value if item not in self.meta.get(key, ()))]
            self.meta[key] = {**self.meta.get(key, {}), **value} if isinstance(value, dict) else value

    def unpack(self, target: str, parts: list[str], facts: list[Facts]) -> None:
        """``d = f(x)`` that gave a tuple becomes ``e, f = f(x)``."""
        self.body[-1] = self.body[-1].replace(f"{target} = ", f"{', '.join(parts)} = ", 1)
        self.live.pop(target, None)
        self.order.remove(target)
        self.order += parts
        self.depth.update(dict.fromkeys(parts, self.depth.get(target, 1)))
        self.live.update(zip(parts, facts))

    def tensors(self) -> list[tuple[str, Facts]]:
        """Live tensors, inputs included, the latest last."""
        return [(name, facts) for name, facts in self.live.items() if facts.get("kind") == "tensor"]

    def made(self) -> list[tuple[str, Facts]]:
        """Live tensors that statements made or changed, the latest last."""
        known = {name: self.live[name] for name in self.order if name in self.live}
        return [(name, facts) for name, facts in known.items() if facts.get("kind") == "tensor"]

    def results(self) -> list[str]:
        """What the function returns: everything that a statement bound and nothing reads, in order."""
        order = list(dict.fromkeys(self.order))
        unread = [name for name in order if name in self.live and (name in self.kept or name not in self.read)]
        return unread or order[-1:] or [name for name, _ in self.inputs[:1]]

    def text(self, meta: dict[str, Any], returns: Sequence[str], build2: Sequence[tuple[str, str]] = ()) -> str:
        """The whole program under its final names; ``build2`` are the inputs of a second builder."""
        inputs = [name for name, _ in self.inputs]
        parts = [_head(self.helpers, meta), _builder("build_inputs", self.inputs, inputs, self.seed)]
        if build2:
            parts.append(_builder("build_inputs2", build2, inputs, self.seed + 1))
        body = ""
        for number, statement in enumerate(self.body):
            body += "\n" * (number > 0 and statement.startswith("def "))  # nested definitions stand apart
            body += "".join(f"    {line}\n" if line else "\n" for line in statement.splitlines())
        function = f"def fn({', '.join(inputs)}):\n{body}"
        text = "\n\n\n".join(part.rstrip("\n") for part in [*parts, function])
        final = finally_named(text, inputs)
        items = [final.names.get(name, name) for name in returns]
        return broken(f"{final.text}\n    return {_result(items, self.as_dict)}\n")


@dataclass(frozen=True)
class FinallyNamed:
    text: str
    names: dict[str, str]


def finally_named(text: str, first: Sequence[str]) -> FinallyNamed:
    """Working names replaced by short ones in order: ``first``, then as they appear. Letters that the text already
    uses for itself (parameters of lambdas) are left out."""
    body = _WORKING.sub("", text)
    used = set(_LETTER.findall(body))
    free = (name for name in names() if name not in used)
    mapping = dict(zip(dict.fromkeys([*first, *_WORKING.findall(text)]), free))
    return FinallyNamed(_WORKING.sub(lambda found: mapping[found[0]], text), mapping)


def _head(helpers: Sequence[str], meta: dict[str, Any]) -> str:
    """Imports, helpers, META; a helper may begin with imports of its own."""
    torch_imports = ["import torch"]
    other_imports: list[str] = []
    definitions = []
    for helper in helpers:
        lines = helper.splitlines()
        for line in lines:
            group = torch_imports if line.startswith(("import torch", "from torch")) else other_imports
            if line.startswith(("import ", "from ")) and line not in group:
                group.append(line)
        rest = "\n".join(line for line in lines if not line.startswith(("import ", "from "))).strip("\n")
        definitions += [rest] if rest else []
    blocks = ["\n".join(sorted(group)) for group in (other_imports, torch_imports) if group]
    head = "\n\n".join(blocks)
    if not definitions:
        return f"{head}\n\n{render_meta(meta)}"
    return "\n\n\n".join([head, *definitions, render_meta(meta)])


def _builder(name: str, inputs: Sequence[tuple[str, str]], returned: Sequence[str], number: int) -> str:
    seeded = any(word in source for _, source in inputs for word in ("rand", "nn.", "()"))
    lines = "".join(f"    {target} = {source}\n" for target, source in inputs)
    seed = f"    torch.manual_seed({number})\n" if seeded else ""
    return f"def {name}():\n{seed}{lines}    return {_tuple(list(returned))}\n"


def _tuple(items: list[str]) -> str:
    return f"({items[0]},)" if len(items) == 1 else ", ".join(items) or "()"


def _result(items: list[str], as_dict: bool) -> str:
    if as_dict:
        return "{" + ", ".join(f"{literal(item)}: {item}" for item in items) + "}"
    return ", ".join(items)
