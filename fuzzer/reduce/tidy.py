"""What falls away by itself once something else is gone: dead statements, unread inputs, notes for the loop."""

from __future__ import annotations

import ast
import dataclasses
import itertools

from fuzzer.engines.block import Block, Returns
from fuzzer.engines.statement import words
from fuzzer.engines.view import ProgramView

#: META keys that tell where a program comes from; nothing that runs or judges it reads them.
_NOTES = words("features knowledge engine parents seed id issue title kind ops dtypes backend_stage")


def without_notes(view: ProgramView) -> ProgramView:
    """Without what only the loop, or a reader, wants to know."""
    return dataclasses.replace(view, meta={key: value for key, value in view.meta.items() if key not in _NOTES})


def single(view: ProgramView, item: str) -> ProgramView:
    """The view that returns one value."""
    return dataclasses.replace(view, returns=Returns("single", (item,)))


def tidied(view: ProgramView) -> ProgramView:
    """Without dead statements, inputs that nothing reads, and module-level definitions that nothing names."""
    while dead := view.dead():
        view = dataclasses.replace(view, body=tuple(s for i, s in enumerate(view.body) if i not in dead))
    return without_unused_definitions(_without_unread_inputs(view))


def _without_unread_inputs(view: ProgramView) -> ProgramView:
    blocks = [view.build_returns, *([view.build2.returns] if view.build2 else [])]
    if view.signature or any(len(block.items) != len(view.params) or block.kind != "tuple" for block in blocks):
        return view
    read = set(view.returns.reads).union(*(statement.reads for statement in view.body))
    kept = [position for position, name in enumerate(view.params) if name in read]
    if len(kept) == len(view.params) or not kept:
        return view
    view = dataclasses.replace(view, params=tuple(view.params[position] for position in kept))
    marks = view.meta.get("mark_dynamic")
    if marks:
        view = view.with_meta(mark_dynamic=[(kept.index(number), dim) for number, dim in marks if number in kept])
    return view.with_blocks(lambda block: _with_results(block, kept))


def _with_results(block: Block, kept: list[int]) -> Block:
    """A builder that returns only some of its values, without the lines that only the others needed.

    Lines that draw random numbers stay, unread, so that the values of those after them do not change.
    """
    returns = dataclasses.replace(block.returns, items=tuple(block.returns.items[position] for position in kept))
    body = list(block.body)
    for statement in reversed(block.body):
        needed = set(returns.reads).union(*(other.reads for other in body if other is not statement))
        if statement.pure and not set(statement.targets) & needed:
            body.remove(statement)
    return Block(tuple(body), returns)


def without_unread_lines(block: Block) -> Block:
    """A builder without lines that nothing reads, those that draw random numbers included."""
    body = list(block.body)
    for statement in reversed(block.body):
        needed = set(block.returns.reads).union(*(other.reads for other in body if other is not statement))
        if statement.targets and not set(statement.targets) & needed:
            body.remove(statement)
    return Block(tuple(body), block.returns)


def without_unused_definitions(view: ProgramView) -> ProgramView:
    """Module-level functions, classes, assignments and imports whose names occur nowhere else."""
    if not view.prelude:
        return view
    nodes = ast.parse(view.prelude).body
    rest = dataclasses.replace(view, prelude="").to_text()
    kept = list(nodes)
    for node in reversed(nodes):
        bound = _bound(node)
        others = [ast.unparse(other) for other in kept if other is not node]
        if bound and "torch" not in bound and not bound & _names("\n".join([*others, rest])):
            kept.remove(node)
    if len(kept) == len(nodes):
        return view
    lines = view.prelude.splitlines()
    texts = ["\n".join(lines[_first_line(node) - 1 : node.end_lineno]) for node in kept]
    gaps = ["\n\n\n" if "\n" in text or "\n" in before else "\n" for before, text in itertools.pairwise(texts)]
    prelude = "".join(text + gap for text, gap in zip(texts, [*gaps, ""]))
    return dataclasses.replace(view, prelude=prelude)


def _first_line(node: ast.stmt) -> int:
    return min([node.lineno, *(decorator.lineno for decorator in getattr(node, "decorator_list", []))])


def _bound(node: ast.stmt) -> set[str]:
    """Names that a definition binds; none for anything that might do more than bind."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return {node.name} if not node.decorator_list else set()
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {alias.asname or alias.name.split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
        calls = (inner.func for inner in ast.walk(node.value) if isinstance(inner, ast.Call))
        does_more = any(not isinstance(function, ast.Name) or function.id != "namedtuple" for function in calls)
        return set() if does_more else {target.id for target in node.targets if isinstance(target, ast.Name)}
    return set()


def _names(text: str) -> set[str]:
    return {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
