"""The search: which smaller programs are tried, in what order, and what is kept."""

from __future__ import annotations

import ast
import builtins
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.reduce import arguments, inputs, options, statements
from fuzzer.reduce.measure import Measure, measure
from fuzzer.reduce.tidy import tidied, without_notes

Fails = Callable[[Program], Awaitable[bool]]
Pass = Callable[[ProgramView], Iterator[ProgramView]]

#: Large cuts first: what they remove, no later pass needs to look at.
PASSES: tuple[Pass, ...] = (
    statements.one_result,
    statements.without_chunks,
    statements.earlier_result,
    statements.without_statement,
    statements.without_nesting,
    options.without_options,
    options.smaller_modules,
    statements.without_inner_statement,
    options.without_unread_lines_of_builders,
    inputs.plain_layouts,
    inputs.plain_dtypes,
    inputs.plain_values,
    options.without_seed,
    inputs.smaller_sizes,
    inputs.fewer_dimensions,
    inputs.one_input_for_two,
    statements.from_input,
    arguments.default_arguments,
    arguments.smaller_numbers,
)

#: From so many statements on, the shortest failing beginning is found by bisection before anything else is tried.
_BISECTED = 6


class _Spent(Exception):
    """The budget of executions is used up."""


@dataclass(frozen=True)
class Reduction:
    """What a reduction came to. ``complete``: every pass was tried on the result, within the budget."""

    program: Program
    executions: int
    complete: bool


async def reduce_program(
    program: Program, fails: Fails, budget: int = 20, enough: Callable[[], bool] = lambda: False
) -> Reduction:
    """The smallest failing program found within ``budget`` executions; ``program`` itself where none is smaller.

    The result is a program that was itself seen to fail, word for word. Deterministic, where ``fails`` is. Every step
    makes ``measure`` smaller, so it ends without a budget as well. ``enough`` is asked before every execution.
    """
    search = _Search(fails, budget, program, enough)
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return Reduction(program, 0, True)
    try:
        best = await search.first(iter([tidied(without_notes(view))]), None) or view
        best = await _shortest_beginning(search, best)
        while True:
            before = best
            for reducer in PASSES:
                while (smaller := await search.first(reducer(best), measure(best))) is not None:
                    best = smaller
            if best is before:
                return Reduction(search.best, search.executions, True)
    except _Spent:
        await _without_leftovers(search)
        return Reduction(search.best, search.executions, False)


async def _without_leftovers(search: _Search) -> None:
    """One execution beyond the budget: inputs that nothing reads any more only puzzle a reader."""
    search.budget += 1
    with contextlib.suppress(_Spent, ViewError):
        await search.first(options.without_unread_lines_of_builders(ProgramView.of(search.best)), None)


async def _shortest_beginning(search: _Search, view: ProgramView) -> ProgramView:
    """Bisection over the number of statements kept from the start; takes log2(n) executions."""
    low, high, best = 0, len(view.body), view
    while high - low > 1 and len(view.body) >= _BISECTED:
        middle = (low + high) // 2
        shorter = await search.first(iter([statements.prefix(view, middle)]), measure(best))
        if shorter is None:
            low = middle
        else:
            high, best = middle, shorter
    return best


class _Search:
    """Runs candidates, each text once, and remembers the best that failed."""

    def __init__(self, fails: Fails, budget: int, program: Program, enough: Callable[[], bool]) -> None:
        self.fails = fails
        self.enough = enough
        self.budget = budget
        self.best = program
        self.executions = 0
        self._seen = {program.text}

    async def first(self, candidates: Iterator[ProgramView], limit: Measure | None) -> ProgramView | None:
        """The first candidate below ``limit`` that fails, or None."""
        for view, program in sound(candidates, limit):
            if program.text in self._seen:
                continue
            self._seen.add(program.text)
            if self.executions >= self.budget or self.enough():
                raise _Spent
            self.executions += 1
            if await self.fails(program):
                self.best = program
                return view
        return None


def sound(candidates: Iterator[ProgramView], limit: Measure | None) -> Iterator[tuple[ProgramView, Program]]:
    """Candidates that are programs, and smaller than ``limit``.

    Edits of text may spell what is no Python, or leave a name unbound; such a candidate costs no execution.
    """
    while True:
        try:
            view = next(candidates)
            if unbound(view):
                continue
            program = view.to_program()
            if limit is not None and not measure(view) < limit:
                continue
        except StopIteration:
            return
        except (UserError, SyntaxError):
            continue
        yield view, program


def unbound(view: ProgramView) -> frozenset[str]:
    """Names that ``fn`` reads and nothing binds before: no such program runs."""
    bound = set(dir(builtins)) | set(view.params)
    for node in ast.walk(ast.parse(view.prelude)):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.alias):
            bound.add((node.asname or node.name).split(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
    if view.signature:
        bound |= {node.arg for node in ast.walk(ast.parse(f"lambda {view.signature}: 0")) if isinstance(node, ast.arg)}
    missing: set[str] = set()
    for statement in view.body:
        missing |= statement.reads - bound - (set() if statement.simple else set(statement.targets))
        bound |= set(statement.targets)
    return frozenset(missing | (view.returns.reads - bound))
