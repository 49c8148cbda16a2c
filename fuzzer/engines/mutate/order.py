"""Mutations of what is there: order, absence, and what is returned."""

from __future__ import annotations

import ast
import dataclasses
from typing import Literal

from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, add_result, undefined
from fuzzer.engines.mutate.guess import OTHER, guess_names
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, Returns


def independent(first: Statement, second: Statement, group: dict[str, int]) -> bool:
    """May the two change places? Whatever may share storage with a written name is taken as touched."""
    if not (first.simple and second.simple) or (first.random and second.random):
        return False
    one, two = set(first.targets), set(second.targets)
    if one & (two | second.reads) or two & first.reads:
        return False
    for writer, other in ((first, second), (second, first)):
        if not writer.pure and not writer.writes and not (writer.random or other.pure):
            return False
        if writer.writes & (other.reads | set(other.targets)):
            return False
        written = {group.get(name, -1) for name in writer.writes}
        if written & {group.get(name, -2) for name in (*other.reads, *other.targets)}:
            return False
    return True


def reorder(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A statement moves past its successors, as far as none of them depends on it."""
    group = view.components()
    moves = []
    for index, statement in enumerate(view.body):
        for place in range(index + 1, len(view.body)):
            if not independent(statement, view.body[place], group):
                break
            moves.append((index, place))
    if not moves:
        return None
    index, place = ctx.rng.choice(moves)
    body = list(view.body)
    body.insert(place, body.pop(index))
    return dataclasses.replace(view, body=tuple(body))


def delete(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A statement goes; its readers take another value, one it read where the shapes agree."""
    options = [index for index, statement in enumerate(view.body) if statement.simple]
    ctx.rng.shuffle(options)
    for index in options:
        changed = _without(view, index, ctx)
        if changed is not None and changed.body and not undefined(changed):
            return changed
    return None


def _without(view: ProgramView, index: int, ctx: MutationContext) -> ProgramView | None:
    statement = view.body[index]
    shorter = dataclasses.replace(view, body=view.body[:index] + view.body[index + 1 :])
    if not statement.targets or set(statement.targets) <= statement.reads:
        return shorter
    if len(statement.targets) != 1 or isinstance(statement.node, ast.AugAssign):
        return None
    before, after = guess_names(view, index), guess_names(view, index + 1)
    target = statement.targets[0]
    shape, dtype = after.get(target, OTHER).shape, after.get(target, OTHER).dtype
    tensors = [name for name in view.bound_before(index) if before.get(name, OTHER).tensor and name != target]
    alike = [n for n in tensors if shape is not None and (before[n].shape, before[n].dtype) == (shape, dtype)] or [
        n for n in tensors if n in statement.reads and dtype != "bool"
    ]
    if not alike:
        return None
    new = ctx.rng.choice(alike)
    rebound = next((k for k in range(index, len(shorter.body)) if target in shorter.body[k].targets), None)
    if rebound is not None:
        return None
    body = tuple(s.renamed({target: new}) if k >= index else s for k, s in enumerate(shorter.body))
    returns = view.returns.map(lambda text: _swap(text, target, new))
    return dataclasses.replace(shorter, body=body, returns=returns)


def _swap(text: str, old: str, new: str) -> str:
    return Statement.of(f"({text})").renamed({old: new}).text[1:-1]


def change_returns(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """An intermediate or an input is returned too, a result goes, or the container changes."""
    names = guess_names(view)
    tensors = [name for name, guess in names.items() if guess.tensor and name in view.locals()]
    returned = set(view.returns.items)
    options = ["container", "alias"] if view.returns.kind != "none" else []
    options += ["intermediate"] * 2 if set(tensors) - returned - set(view.params) else []
    options += ["input"] if set(view.params) & set(tensors) - returned else []
    options += ["drop"] if len(view.returns.items) > 1 else []
    if not options:
        return None
    choice = ctx.rng.choice(options)
    if choice == "intermediate":
        return add_result(view, ctx.rng.choice(sorted(set(tensors) - returned - set(view.params))))
    if choice == "input":
        return add_result(view, ctx.rng.choice(sorted(set(view.params) & set(tensors) - returned)))
    items = view.returns.items
    if choice == "drop":
        place = ctx.rng.randrange(len(items))
        keys = view.returns.keys[:place] + view.returns.keys[place + 1 :]
        return dataclasses.replace(
            view,
            returns=dataclasses.replace(view.returns, items=items[:place] + items[place + 1 :], keys=keys),
        )
    if choice == "alias":
        alias = [item for item in items if names.get(item, OTHER).tensor]
        if not alias:
            return None
        x = ctx.rng.choice(alias)
        view_text = ctx.rng.choice([f"{x}.t()" if names[x].rank == 2 else f"{x}.unsqueeze(0)", f"{x}.detach()", x])
        return add_result(view, view_text if view_text != x or len(items) == 1 else f"{x}[...]")
    kinds: list[Literal["tuple", "list", "dict"]] = ["tuple", "list", "dict"]
    kind = ctx.rng.choice([k for k in kinds if k != view.returns.kind])
    keys = tuple(f'"{item if item.isidentifier() else f"out{n}"}"' for n, item in enumerate(items))
    if len(set(keys)) < len(keys):
        keys = tuple(f'"out{n}"' for n in range(len(items)))
    return dataclasses.replace(view, returns=Returns(kind, items, keys if kind == "dict" else ()))


MUTATIONS = (
    FunctionMutation("reorder", "independent statements change places", (), reorder),
    FunctionMutation("delete", "a statement goes, its readers take another value", ("topology=input_reuse",), delete),
    FunctionMutation(
        "change_returns",
        "an intermediate, an input or an alias is returned, a result goes, or the results come as a list or dict",
        ("topology=multi_output", "topology=alias", "python=container", "python=dict_result"),
        change_returns,
    ),
)
