"""Without a feature of the execution: mode, surroundings, options of the compiler."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView
from fuzzer.features.detect_meta import OPTIONS
from fuzzer.reduce import options
from fuzzer.reduce.tidy import tidied
from fuzzer.switches.apart import apart
from fuzzer.switches.reading import of_families


def mode(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value != "forward":
        yield options.with_mode(view, "forward")


def context(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """The surroundings left out. Random numbers are drawn apart: without the fixed seed nothing could be compared."""
    if value == "random":
        yield from apart(view, of_families(view, frozenset({"random"})))
    elif value in view.meta:
        yield dataclasses.replace(view, meta={key: item for key, item in view.meta.items() if key != value})
    elif value == "second_call":
        yield dataclasses.replace(view, build2=None)
    else:
        yield from unnested(view, ast.With, value)
        yield dataclasses.replace(view, decorators=())


def config(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """The option left at its default."""
    names = tuple(name for name, words in OPTIONS.items() if any(word == value for word, _holds in words))
    meta = {key: _pruned(item, names) for key, item in view.meta.items()}
    yield dataclasses.replace(view, meta={key: item for key, item in meta.items() if item != {}})


def _pruned(item: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(item, Mapping):
        return item
    kept = {key: value for key, value in item.items() if key not in names}
    return {key: _pruned(inner, names) for key, inner in kept.items()}


def unnested(view: ProgramView, kind: type[ast.stmt], word: str) -> Iterator[ProgramView]:
    """The first block in place of every statement of a kind (whose text holds the word)."""
    body: list[Statement] = []
    for statement in view.body:
        if isinstance(statement.node, kind) and word in statement.text:
            body += [Statement.of(ast.unparse(node)) for node in getattr(statement.node, "body", ())]
        else:
            body.append(statement)
    yield tidied(dataclasses.replace(view, body=tuple(body)))
