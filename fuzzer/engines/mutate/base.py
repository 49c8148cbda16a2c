"""What a mutation is, and what it is given."""

from __future__ import annotations

import ast
import dataclasses
import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from fuzzer.engines.idioms import Knowledge
from fuzzer.engines.mutate.guess import OTHER, Guess, guess_names
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView

T = TypeVar("T")

#: A program that grew beyond this is no longer read by a person, nor reduced quickly.
MAX_LINES = 60


class EntryArms(Protocol):
    """What was learnt of bug patterns and subgraphs (see ``fuzzer.policy.schedule``)."""

    def rank_entries(self, ids: Sequence[str], rng: random.Random) -> list[str]: ...

    def entry_odds(self) -> dict[str, tuple[float, float]]: ...


@dataclass
class MutationContext:
    """Everything a mutation may consult.

    ``operators`` is the catalogue of operators (``by_key``, ``neighbours(op)``) or None; ``donor`` a second
    program, for splicing; ``features`` the features asked for, as ``dimension=value``; ``knowledge`` the sources that
    are switched on; ``schedule`` what the campaign learnt of bug patterns and subgraphs, or None.
    """

    rng: random.Random
    operators: Any = None
    donor: ProgramView | None = None
    features: tuple[str, ...] = field(default=())
    knowledge: Knowledge = field(default=Knowledge())
    schedule: EntryArms | None = None

    def chance(self, probability: float) -> bool:
        return self.rng.random() < probability

    def wanted(self, dimension: str) -> frozenset[str]:
        """The values asked for in a dimension of the feature space."""
        pairs = (feature.partition("=") for feature in self.features)
        return frozenset(value for name, _, value in pairs if name == dimension)

    def choose(self, options: Sequence[T], dimension: str = "") -> T:
        """One of the options; one that a wanted feature of the dimension names is preferred."""
        wanted = self.wanted(dimension)
        return self.rng.choice([option for option in options if str(option) in wanted] or list(options))


class Mutation(Protocol):
    """One small change of a program. ``description`` is for people; ``aims`` are ids of features it tends to bring."""

    name: str
    description: str
    aims: tuple[str, ...]

    def apply(self, view: ProgramView, ctx: MutationContext) -> ProgramView | None:
        """The changed view (``view`` is in normal form), or None where it is not applicable."""
        ...


@dataclass(frozen=True)
class FunctionMutation:
    """A mutation that is one function."""

    name: str
    description: str
    aims: tuple[str, ...]
    function: Callable[[ProgramView, MutationContext], ProgramView | None]

    def apply(self, view: ProgramView, ctx: MutationContext) -> ProgramView | None:
        return self.function(view, ctx)


@dataclass(frozen=True)
class Site:
    """A tensor that is there before ``body[index]``."""

    index: int
    name: str
    guess: Guess


def sites(view: ProgramView, start: int = 0) -> list[Site]:
    """Every (position, tensor) of fn's body, the end included; names that were tensors at that point."""
    found = []
    for index in range(start, len(view.body) + 1):
        known = guess_names(view, index)
        found += [Site(index, n, known[n]) for n in view.bound_before(index) if known.get(n, OTHER).tensor]
    return found


def readers(view: ProgramView, name: str, start: int) -> list[int]:
    """Simple statements from ``start`` on that read the name as it was bound before; ``len(body)``: the results."""
    found = []
    for index in range(start, len(view.body)):
        statement = view.body[index]
        if statement.simple and name in statement.reads:
            found.append(index)
        if name in statement.targets:
            return found
    if name in view.returns.reads:
        found.append(len(view.body))
    return found


def rewire(view: ProgramView, index: int, old: str, new: str) -> ProgramView | None:
    """One reader (a statement, or the results) reads another name; what it binds keeps its name."""
    mapping = {old: new}
    if index == len(view.body):
        return dataclasses.replace(view, returns=view.returns.map(lambda t: new if t == old else t))
    statement = view.body[index]
    node = statement.node
    if isinstance(node, ast.AugAssign) or (old in statement.targets and not isinstance(node, ast.Assign)):
        return None
    renamed = statement.renamed(mapping)
    if old in statement.targets:
        assert isinstance(node, ast.Assign)
        targets = " = ".join(statement.source(target) for target in node.targets)
        assert isinstance(renamed.node, ast.Assign)
        renamed = Statement.of(f"{targets} = {renamed.source(renamed.node.value)}")
    return view.with_statement(index, renamed)


def add_result(view: ProgramView, text: str) -> ProgramView:
    """The expression is returned too."""
    returns = view.returns
    if returns.kind in ("single", "none"):
        returns = dataclasses.replace(returns, kind="tuple", items=(*returns.items, text))
    elif returns.kind == "dict":
        key = next(k for k in (f'"extra{n}"' for n in range(1, 99)) if k not in returns.keys)
        returns = dataclasses.replace(returns, items=(*returns.items, text), keys=(*returns.keys, key))
    else:
        returns = dataclasses.replace(returns, items=(*returns.items, text))
    return dataclasses.replace(view, returns=returns)


def calls(view: ProgramView) -> list[tuple[int, Statement, ast.Call]]:
    """The outermost call of each simple statement of fn."""
    found = []
    for index, statement in enumerate(view.body):
        value = statement.node.value if statement.simple else None  # type: ignore[attr-defined]
        if isinstance(value, ast.Call):
            found.append((index, statement, value))
    return found


_TO_INTEGER = re.compile(r"torch\.u?int\d+|\.(int|long|short|char|byte)\(\)|torch\.(int|long|short)\b")


def converts(view: ProgramView) -> bool:
    """Does fn convert to integers? Then huge values, infinities and NaN would be undefined, not a test."""
    return any(_TO_INTEGER.search(statement.text) for statement in view.body)


def undefined(view: ProgramView) -> frozenset[str]:
    """Locals read before they are bound: a mutation that leaves any is a fault of ours."""
    bound = set(view.params)
    everything = view.locals()
    missing: set[str] = set()
    for statement in view.body:
        missing |= (statement.reads & everything) - bound - (set() if statement.simple else set(statement.targets))
        bound |= set(statement.targets)
    return frozenset(missing | ((view.returns.reads & everything) - bound))
