"""Where an input comes from: its statement in ``build_inputs``, the factory call in it, and how to rewrite them."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.guess import (
    FACTORIES,
    Guess,
    Shape,
    factory_shape,
    guess_inputs,
    is_method,
    op_name,
)
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView


@dataclass(frozen=True)
class Source:
    """One tensor input: ``a = torch.randn(3, 4).t()``; ``shape`` is the factory's, ``guess`` the final tensor's."""

    name: str
    param: str
    index: int
    statement: Statement
    factory: ast.Call
    kind: str  # the factory's name
    shape: Shape
    guess: Guess

    @property
    def dtype(self) -> str:
        return self.guess.dtype or "float32"

    @property
    def plain(self) -> bool:
        """Nothing but the factory call stands on the right-hand side."""
        return self.statement.value is self.factory


def sources(view: ProgramView) -> list[Source]:
    """The inputs that are made by a factory call with a literal shape."""
    known = guess_inputs(view)
    found = []
    for name, param in zip(view.inputs, view.params):
        place = definition(view.build, name)
        if place is None:
            continue
        statement = view.build[place]
        call = factory_of(statement)
        shape = factory_shape(call) if call is not None else None
        if call is not None and shape is not None:
            guess = known.get(name, Guess(True))
            found.append(Source(name, param, place, statement, call, op_name(call), shape, guess))
    return found


def definition(body: Sequence[Statement], name: str) -> int | None:
    """The only plain assignment of a name that nothing in the block binds again."""
    places = [index for index, statement in enumerate(body) if name in statement.targets]
    if len(places) != 1 or body[places[0]].targets != (name,) or not isinstance(body[places[0]].node, ast.Assign):
        return None
    return places[0]


def factory_of(statement: Statement) -> ast.Call | None:
    """The factory call at the root of a chain of methods: of ``torch.randn(3).half()[1:]``, ``torch.randn(3)``."""
    node: ast.AST | None = statement.value
    while node is not None:
        if isinstance(node, ast.Call) and not is_method(node):
            return node if op_name(node) in FACTORIES else None
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return None
    return None


def rewrite(view: ProgramView, name: str, change: Callable[[Statement, ast.Call], str | None]) -> ProgramView | None:
    """The right-hand side of an input replaced, in ``build_inputs2`` too (which is dropped where it does not fit)."""

    def block(old: Block) -> Block | None:
        place = definition(old.body, name)
        call = factory_of(old.body[place]) if place is not None else None
        if place is None or call is None:
            return None
        value = change(old.body[place], call)
        if value is None:
            return None
        return Block((*old.body[:place], Statement.of(f"{name} = {value}"), *old.body[place + 1 :]), old.returns)

    first = block(Block(view.build, view.build_returns))
    if first is None:
        return None
    second = block(view.build2) if view.build2 else None
    return dataclasses.replace(view, build=first.body, build2=second)


def append(view: ProgramView, name: str, *texts: str) -> ProgramView:
    """Statements after an input's last assignment, in both builders."""

    def block(old: Block) -> Block:
        place = max((i for i, s in enumerate(old.body) if name in s.targets), default=len(old.body) - 1) + 1
        new = tuple(Statement.of(text) for text in texts)
        return Block((*old.body[:place], *new, *old.body[place:]), old.returns)

    return view.with_blocks(block)


def keywords(statement: Statement, call: ast.Call, without: frozenset[str] = frozenset()) -> str:
    """The factory's keyword arguments as text, with a leading comma."""
    kept = [k for k in call.keywords if k.arg not in without]
    return "".join(f", {k.arg}={statement.source(k.value)}" for k in kept)


def replace_factory(statement: Statement, call: ast.Call, text: str) -> str:
    """The right-hand side with the factory call replaced, its methods kept."""
    edited = statement.edit(call, text)
    assert isinstance(edited.node, ast.Assign)
    return edited.source(edited.node.value)


def spell_shape(shape: Shape) -> str:
    """``(3,)``, ``()``, ``(3, 4)``."""
    return repr(tuple(shape))


def spell_sizes(shape: Shape) -> str:
    """As leading arguments: ``3, 4``; a 0-d shape needs its parentheses."""
    return ", ".join(map(str, shape)) if shape else "()"


def spell_random(shape: Shape, dtype: str) -> str:
    """A seeded random tensor of any dtype, as a person writes it; small integers, nothing undefined."""
    if dtype in tables.FLOATS or dtype in tables.COMPLEX:
        suffix = "" if dtype == "float32" else f", dtype=torch.{dtype}"
        return f"torch.randn({spell_sizes(shape)}{suffix})"
    if dtype.startswith("float8"):
        return f"torch.randn({spell_sizes(shape)}).to(torch.{dtype})"
    low, high = ("0", "2") if dtype == "bool" else ("0", "11") if dtype.startswith("u") else ("-5", "6")
    suffix = "" if dtype == "int64" else f", dtype=torch.{dtype}"
    return f"torch.randint({low}, {high}, {spell_shape(shape)}{suffix})"


def needs_gradient(statement: Statement) -> bool:
    return "requires_grad" in statement.text


def without_gradient(value: str) -> str:
    """The expression without ``.requires_grad_()`` and ``requires_grad=True``."""
    for spelling in (
        ".requires_grad_(True)",
        ".requires_grad_()",
        ", requires_grad=True",
        "requires_grad=True",
    ):
        value = value.replace(spelling, "")
    return value


def with_gradient(value: str, wanted: bool) -> str:
    """The expression as a leaf that requires a gradient, where wanted."""
    if not wanted:
        return value
    compound = isinstance(ast.parse(value, mode="eval").body, (ast.BinOp, ast.UnaryOp))
    return f"({value}).requires_grad_()" if compound else f"{value}.requires_grad_()"
