"""Arguments to their defaults, numbers to small ones."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView

#: Arguments that say what an operator works on, or whose absence asks for another overload with another meaning.
_KEPT = frozenset({"out", "device"})


def default_arguments(view: ProgramView) -> Iterator[ProgramView]:
    """Keyword arguments left out, then the last positional one where it is a literal."""
    for index in reversed(range(len(view.body))):
        statement = view.body[index]
        for call in (node for node in ast.walk(statement.node) if isinstance(node, ast.Call)):
            for keyword in call.keywords:
                if keyword.arg and keyword.arg not in _KEPT:
                    rest = [other for other in call.keywords if other is not keyword]
                    yield view.with_statement(index, _with_call(statement, call, call.args, rest))
            if call.args and _is_literal(call.args[-1]):
                yield view.with_statement(index, _with_call(statement, call, call.args[:-1], call.keywords))


def _with_call(statement: Statement, call: ast.Call, args: list[ast.expr], keywords: list[ast.keyword]) -> Statement:
    parts = [statement.source(argument) for argument in args]
    parts += [f"{k.arg}={statement.source(k.value)}" if k.arg else f"**{statement.source(k.value)}" for k in keywords]
    return statement.edit(call, f"{statement.source(call.func)}({', '.join(parts)})")


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return False
    return True


def smaller_numbers(view: ProgramView) -> Iterator[ProgramView]:
    """A literal number of ``fn`` as 0, 1, 2, or half of it."""
    for index in reversed(range(len(view.body))):
        statement = view.body[index]
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
                for small in _smaller(node.value) if type(node.value) is not bool else ():
                    yield view.with_statement(index, statement.edit(node, repr(small)))


def _smaller(value: float) -> list[float]:
    if value != value or value in (float("inf"), float("-inf")):
        return [1.0]
    kind = type(value)
    half = value // 2 if kind is int else round(value / 2)
    return [kind(small) for small in dict.fromkeys((1, 0, 2, half)) if abs(small) < abs(value)]
