"""Function bodies as blocks of statements, and their A-normal form: one call a statement."""

from __future__ import annotations

import ast
import builtins
import dataclasses
import itertools
import string
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from fuzzer.engines.statement import Statement, loaded_names, tidy

#: Names nobody confuses with digits, in the order in which they are handed out.
_SHORT = [letter for letter in string.ascii_lowercase if letter not in "lo"]


@dataclass(frozen=True)
class Returns:
    """What a function returns. ``single``: one expression in ``items``; ``none``: no final return statement."""

    kind: Literal["tuple", "list", "dict", "single", "none"]
    items: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()  # expressions, for a dict only

    @property
    def reads(self) -> frozenset[str]:
        return frozenset(name for text in (*self.items, *self.keys) for name in loaded_names(text))

    def map(self, change: Any) -> Returns:
        """Every item's text replaced by ``change(text)``."""
        return dataclasses.replace(self, items=tuple(change(item) for item in self.items))


@dataclass(frozen=True)
class Block:
    """The body of ``build_inputs`` or ``build_inputs2``."""

    body: tuple[Statement, ...]
    returns: Returns


def fresh(used: Iterable[str]) -> Iterator[str]:
    """Short names outside ``used``, without end."""
    taken = set(used)
    for suffix in itertools.chain([""], map(str, itertools.count(1))):
        for letter in _SHORT:
            if letter + suffix not in taken:
                yield letter + suffix


def _atomic(node: ast.expr) -> bool:
    """Left in place: names, constants, literal arithmetic, attribute chains, containers of such, closures."""
    if isinstance(node, (ast.Name, ast.Constant, ast.Lambda, ast.JoinedStr)):
        return True
    if isinstance(node, ast.Attribute):
        return _atomic(node.value)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.operand, ast.Constant)
    if isinstance(node, ast.BinOp):
        return all(
            isinstance(n, (ast.BinOp, ast.UnaryOp, ast.Constant, ast.operator, ast.unaryop)) for n in ast.walk(node)
        )
    if isinstance(node, ast.Subscript):  # x.shape[0]
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and _atomic(node.slice)
    return False


class _Flattener:
    """Names every inner call and operator of an expression, in evaluation order."""

    def __init__(self, names: Iterator[str]) -> None:
        self.names = names
        self.emitted: list[Statement] = []

    def name(self, node: ast.expr) -> ast.expr:
        if _atomic(node):
            return node
        inner = self.inner(node)
        if not isinstance(inner, (ast.Call, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Attribute)):
            return inner
        target = next(self.names)
        self.emitted.append(Statement.of(f"{target} = {tidy(inner)}"))
        return ast.Name(target, ast.Load())

    def inner(self, node: ast.expr) -> ast.expr:
        """The node with its operands named; the node itself stays."""
        if _atomic(node):
            return node
        if isinstance(node, ast.Call):
            func = node.func
            if isinstance(func, ast.Attribute):
                func = ast.Attribute(self.name(func.value), func.attr, ast.Load())
            arguments = [self.argument(argument) for argument in node.args]
            keywords = [ast.keyword(k.arg, self.argument(k.value)) for k in node.keywords]
            return ast.Call(func, arguments, keywords)
        if isinstance(node, ast.BinOp):
            left = self.name(node.left)
            return ast.BinOp(left, node.op, self.name(node.right))
        if isinstance(node, ast.UnaryOp):
            return ast.UnaryOp(node.op, self.name(node.operand))
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            left = self.name(node.left)
            return ast.Compare(left, node.ops, [self.name(node.comparators[0])])
        if isinstance(node, ast.Subscript):
            value = self.name(node.value)
            return ast.Subscript(value, self.argument(node.slice), ast.Load())
        if isinstance(node, ast.Attribute):
            return ast.Attribute(self.name(node.value), node.attr, ast.Load())
        return node

    def argument(self, node: ast.expr) -> ast.expr:
        if isinstance(node, ast.Starred):
            return ast.Starred(self.name(node.value), ast.Load()) if isinstance(node.value, ast.Call) else node
        if isinstance(node, (ast.Tuple, ast.List)):
            return type(node)([self.argument(element) for element in node.elts], ast.Load())
        if isinstance(node, ast.Slice):
            bounds = [self.name(bound) if bound else None for bound in (node.lower, node.upper, node.step)]
            return ast.Slice(*bounds)
        return self.name(node)


#: Evaluated conditionally, lazily or with bindings of their own: their operands must not be hoisted.
_LAZY = (
    ast.BoolOp,
    ast.IfExp,
    ast.NamedExpr,
    ast.ListComp,
    ast.SetComp,
    ast.DictComp,
    ast.GeneratorExp,
    ast.Await,
)


def _flatten(statement: Statement, names: Iterator[str]) -> list[Statement]:
    node = statement.node
    if not isinstance(node, (ast.Assign, ast.Expr, ast.AugAssign)):
        return [statement]
    if any(isinstance(part, _LAZY) for part in ast.walk(node)):
        return [statement]
    work = _Flattener(names)
    value = work.inner(node.value)
    if not work.emitted:
        return [statement]
    if isinstance(node, ast.Assign):
        new: ast.stmt = ast.Assign(node.targets, value)
    elif isinstance(node, ast.AugAssign):
        new = ast.AugAssign(node.target, node.op, value)
    else:
        new = ast.Expr(value)
    return [*work.emitted, Statement.of(tidy(new))]


def flatten_block(
    body: Sequence[Statement], returns: Returns, names: Iterator[str]
) -> tuple[tuple[Statement, ...], Returns]:
    out = [new for statement in body for new in _flatten(statement, names)]
    items = []
    for text in returns.items:
        node = ast.parse(text, mode="eval").body
        if any(isinstance(part, _LAZY) for part in ast.walk(node)):
            items.append(text)
            continue
        work = _Flattener(names)
        value = work.name(node)
        out += work.emitted
        items.append(tidy(value) if work.emitted else text)
    return tuple(out), dataclasses.replace(returns, items=tuple(items))


def name_inputs(block: Block, params: Sequence[str]) -> Block:
    """Returned expressions get fn's parameter names, so that each input has a statement of its own."""
    if block.returns.kind != "tuple":
        return block
    used = {name for s in block.body for name in (*s.targets, *s.reads)} | block.returns.reads
    body = list(block.body)
    items: list[str] = []
    spare = fresh(used | set(params) | set(dir(builtins)))
    for index, text in enumerate(block.returns.items):
        if text.isidentifier() and text not in items:
            items.append(text)
            continue
        name = params[index] if index < len(params) and params[index] not in used else next(spare)
        used.add(name)
        body.append(Statement.of(f"{name} = {text}"))
        items.append(name)
    return Block(tuple(body), Returns("tuple", tuple(items)))
