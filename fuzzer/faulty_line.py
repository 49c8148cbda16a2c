"""The lines of a program, one of which may have raised: what it calls, and whether anything reads what it makes."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fuzzer.engines.statement import Statement


def is_unread(text: str, line: int) -> bool:
    """Does nothing that ``fn`` returns or changes depend on the statement at that line?

    A compiler may then drop it, and the exception with it. False where the program cannot tell: no such line in
    ``fn``, control flow around it, syntax that does not parse.
    """
    body = _body(text)
    at = next((number for number, node in enumerate(body) if _covers(node, line)), None)
    if at is None or not isinstance(body[at], (ast.Assign, ast.AnnAssign)):
        return False
    needed: set[str] = set()
    for node in reversed(body[at + 1 :]):
        needed |= _wanted(node, needed)
    statement = Statement.of(ast.unparse(body[at]))
    return not statement.writes and bool(statement.targets) and not needed & set(statement.targets)


def _wanted(node: ast.stmt, needed: set[str]) -> set[str]:
    """Names that must live before this statement, beyond ``needed``; none when nothing reads what it binds."""
    if isinstance(node, (ast.Assign, ast.AnnAssign)):
        statement = Statement.of(ast.unparse(node))
        if not statement.writes and not needed & set(statement.targets):
            return set()
        return set(statement.reads)
    return {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}


def unread_calls(text: str) -> set[str]:
    """Last parts of the names of what is called by statements that nothing depends on (see ``is_unread``)."""
    return {call_at(text, node.lineno) for node in _body(text) if is_unread(text, node.lineno)}


def call_at(text: str, line: int) -> str:
    """Last part of the name of what the statement at that line calls, ``normal`` for ``torch.normal(a, b)``; of
    several calls the outermost. Empty where there is none."""
    for node in _body(text):
        if _covers(node, line):
            calls = (inner for inner in ast.walk(node) if isinstance(inner, ast.Call))
            names = (_name(call.func) for call in calls)
            return next((name for name in names if name), "")
    return ""


def _name(function: ast.expr) -> str:
    """``add`` for ``torch.ops.aten.add.Tensor``; overloads begin with a capital, or are ``default`` or ``out``."""
    parts: list[str] = []
    while isinstance(function, ast.Attribute):
        parts.append(function.attr)
        function = function.value
    if isinstance(function, ast.Name):
        parts.append(function.id)
    if "ops" in parts and len(parts) > 4:
        return parts[1]
    return parts[0] if parts else ""


def _body(text: str) -> Sequence[ast.stmt]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return ()
    functions = (node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == "fn")
    return next((node.body for node in functions), ())


def _covers(node: ast.stmt, line: int) -> bool:
    return node.lineno <= line <= (node.end_lineno or node.lineno)


__all__ = ["call_at", "is_unread", "unread_calls"]
