"""Reduces a failing program: fewer results, statements, inputs and options, as long as the same fault shows.

The predicate decides what "the same fault" is; a pass proposes smaller programs and keeps the first that fails. This is
what grouping needs (which operator is it?); arguments, shapes and values are left alone.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Awaitable, Callable, Iterator

from fuzzer.engines.block import Block, Returns
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.program import Program

Fails = Callable[[Program], Awaitable[bool]]
Pass = Callable[[ProgramView], Iterator[ProgramView]]


class _Spent(Exception):
    """The budget of executions is used up."""


async def reduce_program(program: Program, fails: Fails, budget: int = 20) -> Program:
    """The smallest failing program found within ``budget`` executions; ``program`` itself where nothing smaller fails.

    The result is a program that was itself seen to fail, word for word.
    """
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return program
    search = _Search(fails, budget, program)
    try:
        best = await search.first(iter([_tidied(_plain_meta(view))])) or view
        for reducer in PASSES:
            while True:
                smaller = await search.first(reducer(best))
                if smaller is None:
                    break
                best = smaller
    except _Spent:
        pass
    return search.best


class _Search:
    """Runs candidates, each text once, and remembers the best that failed."""

    def __init__(self, fails: Fails, budget: int, program: Program) -> None:
        self.fails = fails
        self.left = budget
        self.best = program
        self._seen = {program.text}

    async def first(self, candidates: Iterator[ProgramView]) -> ProgramView | None:
        for view in candidates:
            try:
                program = view.to_program()
            except (UserError, SyntaxError):
                continue
            if program.text in self._seen:
                continue
            self._seen.add(program.text)
            if self.left <= 0:
                raise _Spent
            self.left -= 1
            if await self.fails(program):
                self.best = program
                return view
        return None


# -- passes: each yields smaller views, the boldest first -----------------------------------------------------------


def one_result(view: ProgramView) -> Iterator[ProgramView]:
    """Return one of several results."""
    if len(view.returns.items) > 1:
        for item in view.returns.items:
            yield _tidied(dataclasses.replace(view, returns=_single(view, item)))


def earlier_result(view: ProgramView) -> Iterator[ProgramView]:
    """Return an intermediate value instead: the fewer statements it needs, the earlier it is tried."""
    options = []
    for index, statement in enumerate(view.body[:-1]):
        for target in statement.targets[:2]:
            cut = dataclasses.replace(view, body=view.body[: index + 1], returns=_single(view, target))
            options.append(_tidied(cut))
    yield from sorted(options, key=lambda option: len(option.body))


def without_statement(view: ProgramView) -> Iterator[ProgramView]:
    """Leave a statement out; what read its result reads one of its own operands instead."""
    for index in reversed(range(len(view.body))):
        statement = view.body[index]
        rest = view.body[:index] + view.body[index + 1 :]
        bound = view.bound_before(index)
        later_reads = set(view.returns.reads).union(*(other.reads for other in view.body[index + 1 :]))
        unread = not set(statement.targets) & later_reads
        if unread or set(statement.targets) <= set(view.params):
            yield _tidied(dataclasses.replace(view, body=rest))
        elif len(statement.targets) == 1:
            for operand in _operands(statement, bound)[:2]:
                mapping = {statement.targets[0]: operand}
                later = tuple(other.renamed(mapping) for other in view.body[index + 1 :])
                returns = view.returns.map(lambda text, mapping=mapping: mapping.get(text, text))
                yield _tidied(dataclasses.replace(view, body=view.body[:index] + later, returns=returns))


def _operands(statement: Statement, bound: tuple[str, ...]) -> list[str]:
    """Names that the statement reads, in the order in which they stand in its text: the first is the likeliest."""
    positions = {
        name: re.search(rf"\b{re.escape(name)}\b", statement.text.partition("=")[2] or statement.text)
        for name in bound
        if name in statement.reads
    }
    return [name for _, name in sorted((found.start(), name) for name, found in positions.items() if found)]


def without_options(view: ProgramView) -> Iterator[ProgramView]:
    """Options off, plain mode, no second call."""
    for key in ("inductor_config", "dynamo_config", "functorch_config", "compile", "random", "no_grad"):
        if key in view.meta:
            yield _with_meta(view, {name: value for name, value in view.meta.items() if name != key})
    if view.build2 is not None:
        yield dataclasses.replace(view, build2=None)
    if view.mode in ("backward", "dynamic", "train"):
        plainer = "eval" if view.mode == "train" else "forward"
        yield _with_meta(view, {**view.meta, "mode": plainer})


def without_unread_inputs(view: ProgramView) -> Iterator[ProgramView]:
    """Lines of the builder that nothing reads: they moved the random numbers of those after them."""
    shorter = view.with_blocks(_without_unread)
    if shorter != view:
        yield shorter


def _without_unread(block: Block) -> Block:
    body = list(block.body)
    for statement in reversed(block.body):
        needed = set(block.returns.reads).union(*(other.reads for other in body if other is not statement))
        if statement.targets and not set(statement.targets) & needed:
            body.remove(statement)
    return Block(tuple(body), block.returns)


PASSES: tuple[Pass, ...] = (
    one_result,
    earlier_result,
    without_statement,
    without_options,
    without_unread_inputs,
)


# -- helpers ----------------------------------------------------------------------------------------------------------


def _single(view: ProgramView, item: str) -> Returns:
    return dataclasses.replace(view.returns, kind="single", items=(item,), keys=())


def _plain_meta(view: ProgramView) -> ProgramView:
    """Without what only the loop wants to know."""
    kept = {key: value for key, value in view.meta.items() if key not in ("features", "engine", "parents", "seed")}
    return _with_meta(view, kept)


def _with_meta(view: ProgramView, meta: dict[str, object]) -> ProgramView:
    return dataclasses.replace(view, meta=meta)


def _tidied(view: ProgramView) -> ProgramView:
    """Without dead statements, and without inputs that nothing reads."""
    while dead := view.dead():
        view = dataclasses.replace(view, body=tuple(s for i, s in enumerate(view.body) if i not in dead))
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
        moved = [(kept.index(number), dim) for number, dim in marks if number in kept]
        view = view.with_meta(mark_dynamic=moved)
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
