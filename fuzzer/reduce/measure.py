"""How large a program is: what a reduction makes smaller, so that it ends."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from typing import Any

from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.program import Program

#: Ways to fill a tensor, from the plainest. What is not listed is worse than all of these.
_FILLS = ("zeros", "ones", "arange", "randn", "rand", "full", "linspace", "randint", "tensor")
_SHAPELESS = len(_FILLS)

#: A literal number counts by its size up to here, so that 2**63 - 1 does not outweigh a program.
_LARGEST = 1 << 20

#: Modes from the plainest.
_MODES = ("forward", "eval", "jit_trace", "dynamic", "train", "backward")

Measure = tuple[int, ...]


def measure(view: ProgramView) -> Measure:
    """Size of a program as natural numbers, compared from the first on.

    In order: statements of ``fn`` and of the module-level text, results, options, inputs, lines of the builders,
    tensors that are filled other than plainly, dtypes that are spelt out, layout steps of the inputs, nodes of the
    syntax tree, literal numbers, characters. The order is well-founded, so no chain of smaller programs is endless.
    """
    fn = [statement.node for statement in view.body]
    blocks = [view.build, *([view.build2.body] if view.build2 else [])]
    built = [statement.node for block in blocks for statement in block]
    items = [ast.parse(f"({text})") for text in (*view.returns.items, *view.returns.keys)]
    items += [ast.parse(f"({text})") for text in view.build_returns.items]
    module = list(ast.parse(view.prelude).body)
    everything: list[ast.AST] = [*fn, *built, *items, *module]
    return (
        _count(fn, ast.stmt) + _count(module, ast.stmt) + len(view.decorators),
        len(view.returns.items),
        _options(view.meta) + (view.build2 is not None),
        len(view.params),
        _count(built, ast.stmt),
        sum(_fill(node) for node in _walk([*built, *items])),
        sum(isinstance(node, ast.keyword) and node.arg == "dtype" for node in _walk([*built, *items])),
        sum(isinstance(node, (ast.Subscript, ast.Call)) for node in _walk(built)),
        sum(1 for _ in _walk(everything)),
        sum(_number(node) for node in _walk(everything)),
        len(view.to_text()),
    )


def statements(program: Program) -> int:
    """Statements of ``fn`` in A-normal form (one call each), nested ones included; 0 where it is no plain function."""
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return 0
    return _count([statement.node for statement in view.body], ast.stmt)


def _walk(nodes: Iterable[ast.AST]) -> Iterable[ast.AST]:
    return (inner for node in nodes for inner in ast.walk(node))


def _count(nodes: Iterable[ast.AST], kind: type[ast.AST]) -> int:
    return sum(isinstance(node, kind) for node in _walk(nodes))


def _options(meta: Mapping[str, Any]) -> int:
    """Entries of META, those of nested maps one by one, and how far its mode is from the plainest."""
    mode = str(meta.get("mode", "forward"))
    total = _MODES.index(mode) if mode in _MODES else len(_MODES)
    for key, value in meta.items():
        if key != "mode":
            total += 1 + (_options({**value, "mode": "forward"}) if isinstance(value, Mapping) else 0)
    return total


def _fill(node: ast.AST) -> int:
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return 0
    owner = node.func.value
    if not (isinstance(owner, ast.Name) and owner.id == "torch"):
        return 0
    name = node.func.attr
    return _FILLS.index(name) if name in _FILLS else _SHAPELESS


def _number(node: ast.AST) -> int:
    if not isinstance(node, ast.Constant) or isinstance(node.value, (bool, complex)):
        return 0
    value = node.value
    if not isinstance(value, (int, float)):
        return 0
    if value != value or abs(value) >= _LARGEST:
        return _LARGEST
    return int(abs(value)) + (value != int(value))
