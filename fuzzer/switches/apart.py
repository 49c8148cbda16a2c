"""Taking statements out of the compiled graph while the program computes the same.

*Apart*: the statement runs in a function that the compiler is told to leave alone, so eager runs it; all others are
compiled as before, up to the graph breaks around it. *Broken*: all statements are compiled, but a graph break stands
between two of them, so that nothing is fused, matched or reordered across it.
"""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView

_BREAK = Statement.of("torch._dynamo.graph_break()")
_OPTIONS = ("compile", "compile_kwargs")


def apart(view: ProgramView, indices: Collection[int]) -> Iterator[ProgramView]:
    """The statements at ``indices`` of ``fn``, each in an uncompiled function of its own; nothing where none can be.

    What returns from ``fn`` cannot: it is left where it stands.
    """
    taken = view.used_names()
    names = (name for name in (f"apart{number}" for number in range(len(taken) + len(view.body))) if name not in taken)
    body, made = list(view.body), []
    for index in sorted(indices):
        statement = view.body[index]
        if not _movable(statement):
            continue
        given = [name for name in view.bound_before(index) if name in statement.reads]
        bound = [name for name in statement.targets if name.isidentifier()]
        name = next(names)
        lines = [statement.text, *([f"return {', '.join(bound)}"] if bound else [])]
        made.append(
            f"@torch.compiler.disable\ndef {name}({', '.join(given)}):\n" + textwrap.indent("\n".join(lines), "    ")
        )
        call = f"{name}({', '.join(given)})"
        body[index] = Statement.of(f"{', '.join(bound)} = {call}" if bound else call)
    if made and view.mode != "jit_trace":
        prelude = "\n\n\n".join([*([view.prelude] if view.prelude else []), *made])
        yield dataclasses.replace(view, prelude=prelude, body=tuple(body), meta=breakable(view.meta))


def _movable(statement: Statement) -> bool:
    """May it stand in a function of its own? Not what returns, and not what defines: a definition computes nothing."""
    if isinstance(statement.node, (ast.FunctionDef, ast.ClassDef, ast.Global, ast.Nonlocal, ast.Pass)):
        return False
    if "apart" in statement.text or statement.text == _BREAK.text:
        return False
    own = [ast.Return, ast.Yield, ast.YieldFrom, ast.Nonlocal]
    return not any(isinstance(node, tuple(own)) for node in ast.walk(statement.node))


def broken(view: ProgramView, after: Collection[int]) -> Iterator[ProgramView]:
    """A graph break behind each of the statements; nothing behind the last one, where it would divide nothing."""
    body: list[Statement] = []
    for index, statement in enumerate(view.body):
        body.append(statement)
        if index in after and index + 1 < len(view.body):
            body.append(_BREAK)
    if len(body) > len(view.body) and view.mode != "jit_trace":
        yield dataclasses.replace(view, body=tuple(body), meta=breakable(view.meta))


def breakable(meta: Mapping[str, Any]) -> dict[str, Any]:
    """META that allows graph breaks."""
    changed = dict(meta)
    for key in _OPTIONS:
        if isinstance(changed.get(key), Mapping):
            changed[key] = {name: value for name, value in changed[key].items() if name != "fullgraph"}
    return changed
