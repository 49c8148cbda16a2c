"""Fewer results and statements. Each pass yields smaller views, the boldest first."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Iterator

from fuzzer.engines.block import Returns
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, rename_text
from fuzzer.reduce.tidy import single, tidied


def prefix(view: ProgramView, length: int) -> ProgramView:
    """The first ``length`` statements; all that is bound there and read by none of them is returned.

    What fails in these statements still fails, whatever followed: so the shortest one is found by bisection.
    """
    body = view.body[:length]
    shorter = dataclasses.replace(view, body=body)
    read = set().union(*(statement.reads for statement in body)) if body else set()
    made = dict.fromkeys(target for statement in body for target in statement.targets)
    ends = [name for name in made if name not in read] or list(made)[-1:] or list(view.params)[:1]
    returns = Returns("tuple" if len(ends) > 1 else "single", tuple(ends))
    return tidied(dataclasses.replace(shorter, returns=returns))


def one_result(view: ProgramView) -> Iterator[ProgramView]:
    """Return one of several results; then all but one."""
    items = view.returns.items
    if len(items) > 1:
        for item in items:
            yield tidied(single(view, item))
        if len(items) > 2 and view.returns.kind in ("tuple", "list"):
            for index in range(len(items)):
                rest = items[:index] + items[index + 1 :]
                yield tidied(dataclasses.replace(view, returns=dataclasses.replace(view.returns, items=rest)))
    elif view.returns.kind in ("tuple", "list", "dict") and items:
        yield tidied(single(view, items[0]))


def earlier_result(view: ProgramView) -> Iterator[ProgramView]:
    """Return an intermediate value instead: the fewer statements it needs, the earlier it is tried."""
    options = []
    for index, statement in enumerate(view.body[:-1]):
        for target in statement.targets[:2]:
            cut = dataclasses.replace(view, body=view.body[: index + 1])
            options.append(tidied(single(cut, target)))
    yield from sorted(options, key=lambda option: len(option.body))


def without_chunks(view: ProgramView) -> Iterator[ProgramView]:
    """Leave runs of statements out, long ones first; what read their results reads one of their operands instead."""
    length = len(view.body) // 2
    while length > 1:
        for start in range(len(view.body) - length, -1, -length):
            yield from _without(view, start, start + length, 1)
        length //= 2


def without_statement(view: ProgramView) -> Iterator[ProgramView]:
    """Leave one statement out; its readers read its first or second operand instead, or an input."""
    for index in reversed(range(len(view.body))):
        yield from _without(view, index, index + 1, 2)


def from_input(view: ProgramView) -> Iterator[ProgramView]:
    """Readers of a statement's result read an input of the program instead."""
    for index in reversed(range(len(view.body))):
        statement = view.body[index]
        if len(statement.targets) == 1 and isinstance(statement.node, ast.Assign):
            for name in view.params:
                if name not in statement.targets:
                    yield _redirected(view, index, index + 1, {statement.targets[0]: name})


def _without(view: ProgramView, start: int, end: int, choices: int) -> Iterator[ProgramView]:
    """The view without ``body[start:end]``; up to ``choices`` ways to feed those that read what was bound there."""
    for choice in range(choices):
        mapping: dict[str, str] = {}
        bound = view.bound_before(start)
        usable = True
        for position in range(start, end):
            statement = view.body[position]
            if set(statement.targets) <= set(bound):
                continue  # an in-place statement, or one that binds a name anew: the old value is read on
            operands = _operands(statement, view.bound_before(position))
            for target in statement.targets:
                operand = operands[min(choice, len(operands) - 1)] if operands else ""
                operand = mapping.get(operand, operand)
                if operand and operand not in bound:
                    operand = ""
                if operand:
                    mapping[target] = operand
                elif _read_later(view, end, target):
                    usable = False
        if usable:
            yield _redirected(view, start, end, mapping)
        if not mapping:
            return


def _redirected(view: ProgramView, start: int, end: int, mapping: dict[str, str]) -> ProgramView:
    later = tuple(other.renamed(mapping) for other in view.body[end:])
    returns = view.returns.map(lambda text: rename_text(text, mapping))
    if returns.kind in ("tuple", "list"):
        returns = dataclasses.replace(returns, items=tuple(dict.fromkeys(returns.items)))
    return tidied(dataclasses.replace(view, body=view.body[:start] + later, returns=returns))


def _read_later(view: ProgramView, end: int, name: str) -> bool:
    return name in view.returns.reads or any(name in other.reads for other in view.body[end:])


def _operands(statement: Statement, bound: tuple[str, ...]) -> list[str]:
    """Names that the statement reads, in the order in which they stand in its text: the first is the likeliest."""
    text = statement.text.partition("=")[2] if isinstance(statement.node, ast.Assign) else statement.text
    positions = {name: re.search(rf"\b{re.escape(name)}\b", text) for name in bound if name in statement.reads}
    return [name for _, name in sorted((found.start(), name) for name, found in positions.items() if found)]


def without_nesting(view: ProgramView) -> Iterator[ProgramView]:
    """One branch of an ``if`` or ``try``, the body of a ``with`` or ``for``, in place of the whole statement."""
    for index in reversed(range(len(view.body))):
        for block in _blocks(view.body[index].node):
            if any(isinstance(inner, (ast.Break, ast.Continue)) for node in block for inner in ast.walk(node)):
                continue
            texts = [ast.unparse(node) for node in block if not isinstance(node, ast.Pass)]
            returned = [node for node in block if isinstance(node, ast.Return)]
            if returned:
                continue
            body = view.body[:index] + tuple(map(Statement.of, texts)) + view.body[index + 1 :]
            yield tidied(dataclasses.replace(view, body=body).normalise())


def _blocks(node: ast.stmt) -> list[list[ast.stmt]]:
    if isinstance(node, (ast.If, ast.For, ast.While)):
        return [block for block in (node.body, node.orelse) if block]
    if isinstance(node, ast.With):
        return [node.body]
    if isinstance(node, ast.Try):
        return [node.body, *(handler.body for handler in node.handlers)]
    return []


def without_inner_statement(view: ProgramView) -> Iterator[ProgramView]:
    """Leave out a statement of a branch, a loop, a nested function, or a class of the module's text."""
    for index, statement in enumerate(view.body):
        for text in _shorter_texts(statement.text):
            yield tidied(view.with_statement(index, Statement.of(text)))
    for text in _shorter_texts(view.prelude):
        yield tidied(dataclasses.replace(view, prelude=text))


def _shorter_texts(text: str) -> Iterator[str]:
    """The text without one of its nested statements, of which the last of a block cannot go."""
    count = sum(len(block) for node in ast.walk(ast.parse(text)) for block in _inner_blocks(node))
    for number in reversed(range(count)):
        tree = ast.parse(text)
        blocks = [block for node in ast.walk(tree) for block in _inner_blocks(node)]
        for block in blocks:
            if number < len(block):
                if len(block) > 1 and not isinstance(block[number], ast.Return):
                    del block[number]
                    yield ast.unparse(tree)
                break
            number -= len(block)


def _inner_blocks(node: ast.AST) -> list[list[ast.stmt]]:
    """Blocks of statements inside a node, the module's own excepted."""
    if isinstance(node, ast.Module):
        return []
    fields = (getattr(node, name, None) for name in ("body", "orelse", "finalbody"))
    return [field for field in fields if isinstance(field, list) and field and isinstance(field[0], ast.stmt)]
