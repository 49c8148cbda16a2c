"""Mutations of Python around the tensors: a module, a function, a closure, a loop, a branch, ``torch.cond``."""

from __future__ import annotations

import ast
import dataclasses
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, readers
from fuzzer.engines.mutate.guess import OTHER, guess_names, op_name
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, fresh
from fuzzer.engines.writer import render_function


@dataclass(frozen=True)
class Slice:
    """Consecutive simple statements: what they need from before, what is needed of them behind."""

    start: int
    stop: int
    needs: tuple[str, ...]
    gives: tuple[str, ...]


def pick_slice(view: ProgramView, ctx: MutationContext, longest: int = 6) -> Slice | None:
    """A random run of simple statements that gives at least one value."""
    runs = []
    for start in range(len(view.body)):
        for stop in range(start + 1, min(start + longest, len(view.body)) + 1):
            if not view.body[stop - 1].simple:
                break
            part = cut(view, start, stop)
            if part.gives:
                runs.append(part)
    return ctx.rng.choice(runs) if runs else None


def cut(view: ProgramView, start: int, stop: int) -> Slice:
    bound: set[str] = set()
    needs: dict[str, None] = {}
    before = set(view.bound_before(start))
    for statement in view.body[start:stop]:
        for name in sorted(statement.reads - bound):
            if name in before:
                needs[name] = None
        bound |= set(statement.targets)
    later = {name for s in view.body[stop:] for name in s.reads} | view.returns.reads
    return Slice(start, stop, tuple(needs), tuple(name for name in _order(view, start, stop) if name in later))


def _order(view: ProgramView, start: int, stop: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for s in view.body[start:stop] for name in s.targets))


def _replace(view: ProgramView, part: Slice, *texts: str) -> ProgramView:
    new = tuple(Statement.of(text) for text in texts)
    return dataclasses.replace(view, body=view.body[: part.start] + new + view.body[part.stop :])


def _function(name: str, params: Sequence[str], part: Slice, view: ProgramView) -> str:
    lines = [s.text for s in view.body[part.start : part.stop]] + [f"return {', '.join(part.gives)}"]
    return f"def {name}({', '.join(params)}):\n" + textwrap.indent("\n".join(lines), "    ")


def wrap_module(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """fn's body becomes the forward of an ``nn.Module`` that fn calls."""
    if view.signature is not None or view.decorators or not view.body or view.returns.kind == "none":
        return None
    used = view.used_names()
    classname = next(n for n in ("Model", "Block", *(f"Block{k}" for k in range(2, 99))) if n not in used)
    name = next(n for n in ("model", "block", *(f"block{k}" for k in range(2, 99))) if n not in used)
    forward = render_function("forward", ", ".join(("self", *view.params)), view.body, view.returns)
    text = f"class {classname}(torch.nn.Module):\n" + textwrap.indent(forward, "    ")
    prelude = f"{view.prelude}\n\n\n{text}\n\n\n{name} = {classname}()"
    returns = dataclasses.replace(view.returns, kind="single", items=(f"{name}({', '.join(view.params)})",), keys=())
    return dataclasses.replace(view, prelude=prelude.lstrip("\n"), body=(), returns=returns)


def wrap_function(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Some statements become a nested function, called once; as a closure it takes no arguments."""
    part = pick_slice(view, ctx)
    if part is None:
        return None
    name = next(n for n in ("step", "inner", *(f"step{k}" for k in range(2, 99))) if n not in view.used_names())
    bound = {target for s in view.body[part.start : part.stop] for target in s.targets}
    closure = ctx.chance(0.5) and not bound & set(part.needs)
    params = () if closure else part.needs
    call = f"{', '.join(part.gives)} = {name}({', '.join(params)})"
    return _replace(view, part, _function(name, params, part, view), call)


def wrap_loop(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Some statements run in a loop of a few turns, which the compiler unrolls."""
    part = pick_slice(view, ctx, longest=3)
    if part is None:
        return None
    turns = ctx.rng.choice([1, 2, 2, 3])
    lines = "\n".join(s.text for s in view.body[part.start : part.stop])
    return _replace(view, part, f"for _ in range({turns}):\n" + textwrap.indent(lines, "    "))


def wrap_branch(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A statement is computed one way or another, by the sum of a tensor: the graph breaks there."""
    options = []
    for index, statement in enumerate(view.body):
        names, after = guess_names(view, index), guess_names(view, index + 1)
        subjects = [n for n in view.bound_before(index) if names.get(n, OTHER).real]
        single = isinstance(statement.node, ast.Assign) and len(statement.targets) == 1
        if single and subjects and after.get(statement.targets[0], OTHER).real:
            options.append((index, subjects, after[statement.targets[0]].dtype))
    if not options:
        return None
    index, subjects, dtype = ctx.rng.choice(options)
    statement = view.body[index]
    target = statement.targets[0]
    other = f"{target} = {'~' if dtype == 'bool' else '-'}{target}"
    if dtype in ("uint8", "uint16", "uint32", "uint64"):
        other = f"{target} = {target} + 1"
    branch = f"if {ctx.rng.choice(subjects)}.sum() > 0:\n    {other}"
    return view.with_statement(index, statement, Statement.of(branch))


def wrap_cond(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A pointwise statement becomes ``torch.cond`` with a second branch of the same shape."""
    options = []
    for index, statement in enumerate(view.body):
        names, after = guess_names(view, index), guess_names(view, index + 1)
        value = statement.value
        pointwise = op_name(value) in tables.POINTWISE if isinstance(value, ast.Call) else isinstance(value, ast.BinOp)
        single = isinstance(statement.node, ast.Assign) and len(statement.targets) == 1 and statement.pure
        if value is None or not (single and pointwise and after.get(statement.targets[0], OTHER).floating):
            continue
        local = sorted(statement.reads & set(view.bound_before(index)))
        if len(local) > 1 and any(_is_view(view, name, index) for name in local):
            continue  # operands of torch.cond must not share storage
        if local and all(names.get(name, OTHER).tensor and names[name].real for name in local):
            subjects = [n for n in view.bound_before(index) if names.get(n, OTHER).real]
            options.append((index, local, subjects))
    if not options or "torch.cond" in view.to_text() or view.mode == "jit_trace":
        return None
    index, local, subjects = ctx.rng.choice(options)
    statement = view.body[index]
    assert isinstance(statement.node, ast.Assign)
    text = statement.source(statement.node.value)
    names_ = ", ".join(local)
    operands = f"({names_},)" if len(local) == 1 else f"({names_})"
    first, second = f"lambda {names_}: {text}", f"lambda {names_}: ({text}) * 2"
    if isinstance(statement.node.value, ast.Call):
        second = f"lambda {names_}: {text} * 2"
    text = f"{statement.targets[0]} = torch.cond({ctx.rng.choice(subjects)}.sum() > 0, {first}, {second}, {operands})"
    return view.with_statement(index, Statement.of(text))


def _is_view(view: ProgramView, name: str, index: int) -> bool:
    """Was the name last bound to what may be a view?"""
    for statement in reversed(view.body[:index]):
        if name in statement.targets:
            value = statement.value
            return isinstance(value, (ast.Subscript, ast.Attribute)) or (
                isinstance(value, ast.Call) and op_name(value) in tables.VIEWS
            )
    return False


def graph_break(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """The graph is cut in two: by an explicit break, or by a number read back from a tensor."""
    if not view.body:
        return None
    index = ctx.rng.randrange(1, len(view.body) + 1)
    known = guess_names(view, index)
    subjects = [n for n in view.bound_before(index) if known.get(n, OTHER).floating]
    later = [n for n in subjects if len(view.body) in readers(view, n, index)]
    if not later or ctx.chance(0.5):
        return view.insert(index, "torch._dynamo.graph_break()")
    subject, result = ctx.rng.choice(subjects), ctx.rng.choice(later)
    name = next(fresh(view.used_names()))
    changed = view.insert(index, f"{name} = {subject}.sum().item()")
    if result not in changed.returns.items:
        return None
    items = tuple(f"{text} + {name}" if text == result else text for text in changed.returns.items)
    return dataclasses.replace(changed, returns=dataclasses.replace(changed.returns, items=items))


MUTATIONS = (
    FunctionMutation("wrap_module", "the body becomes the forward of an nn.Module", ("python=module",), wrap_module),
    FunctionMutation(
        "wrap_function", "some statements become a nested function or a closure", ("python=closure",), wrap_function
    ),
    FunctionMutation("wrap_loop", "some statements run in a short loop", ("control=for_loop",), wrap_loop),
    FunctionMutation("wrap_branch", "a result changes under a condition on data", ("control=if_data",), wrap_branch),
    FunctionMutation("wrap_cond", "a pointwise statement becomes torch.cond", ("control=cond",), wrap_cond),
    FunctionMutation(
        "graph_break",
        "the graph is cut, or a number is read back from a tensor",
        ("python=graph_break", "python=item"),
        graph_break,
    ),
)
