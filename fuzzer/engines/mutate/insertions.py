"""Mutations that put a statement in: a view, a cast, an in-place write, a copy before a write, dead code."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.base import (
    FunctionMutation,
    MutationContext,
    Site,
    add_result,
    readers,
    rewire,
    sites,
)
from fuzzer.engines.mutate.guess import op_name
from fuzzer.engines.view import ProgramView

#: (view and back again, minimal rank): shape and dtype stay, so whatever reads the result still fits.
_ROUND_TRIPS = (
    ("{x}.unsqueeze(0).squeeze(0)", 0),
    ("{x}.transpose(0, -1).contiguous().transpose(0, -1)", 1),
    ("{x}.flatten().reshape({x}.shape)", 0),
    ("{x}.expand(2, *{x}.shape)[1]", 0),
    ("{x}.view({x}.dtype)", 0),
    ("{x}[...]", 0),
    ("{x}.view_as({x})", 0),
    ("{x}.mT.clone().mT", 2),
    ("{x}.flip(0).flip(0)", 1),
    ("torch.stack((ZERO, {x}), -1)[..., 1]", 0),
)
#: Shape changes: the result goes to one reader that takes any shape, or is returned.
_VIEWS = (
    ("{x}.flatten()", 0),
    ("{x}.unsqueeze(0)", 0),
    ("{x}.unsqueeze(-1)", 0),
    ("{x}.transpose(0, -1)", 1),
    ("{x}[::2]", 1),
    ("{x}[1:]", 1),
    ("{x}[..., -1]", 1),
    ("{x}.expand(2, *{x}.shape)", 0),
    ("{x}.reshape(-1, 1)", 0),
    ("{x}.narrow(0, 0, 1)", 1),
    ("{x}.diagonal()", 2),
    ("{x}.squeeze()", 0),
)
#: dtype → one of equal width, to look at the bits.
_SAME_WIDTH = {
    "float32": "int32",
    "float64": "int64",
    "float16": "int16",
    "bfloat16": "int16",
    "int32": "float32",
}


def insert_view(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A view of a tensor, on the way to one of its readers or returned."""
    found = _read_sites(view)
    if not found:
        return None
    site, reader = ctx.rng.choice(found)
    name = view.fresh_name()
    if ctx.chance(0.5):
        text = ctx.rng.choice(_fitting(_ROUND_TRIPS, site)).replace("ZERO", site.name)
        changed = rewire(view, reader, site.name, name)
        return changed.insert(reader, f"{name} = {text.format(x=site.name)}") if changed else None
    options = _fitting(_VIEWS, site)
    width = _SAME_WIDTH.get(site.guess.dtype or "")
    if width and view.mode == "forward":
        options.append(f"{{x}}.view(torch.{width})")
    text = ctx.rng.choice(options).format(x=site.name)
    statement = view.body[reader] if reader < len(view.body) else None
    if statement and op_name(statement.value or ast.Constant(0)) in tables.UNARY - {"layer_norm"}:
        changed = rewire(view, reader, site.name, name)
        return changed.insert(reader, f"{name} = {text}") if changed else None
    return add_result(view.insert(reader, f"{name} = {text}"), name)


def _fitting(options: Sequence[tuple[str, int]], site: Site) -> list[str]:
    rank = site.guess.rank
    return [text for text, least in options if (rank if rank is not None else 1) >= least]


def _read_sites(view: ProgramView, start: int = 0) -> list[tuple[Site, int]]:
    """(tensor, who reads it), each pair once, the tensor as it is just before the reader."""
    return [
        (site, site.index)
        for site in sites(view, start)
        if site.index in readers(view, site.name, site.index)[:1]
        and not (site.index < len(view.body) and site.name in view.body[site.index].writes)
    ]


def insert_cast(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A conversion on the way to a reader: there and back, or to stay."""
    found = [(site, reader) for site, reader in _read_sites(view) if site.guess.real or site.guess.dtype is None]
    if not found:
        return None
    site, reader = ctx.rng.choice(found)
    x, names = site.name, view.fresh_names()
    graded = view.mode in ("backward", "train")
    floats = [d for d in tables.FLOATS if d != site.guess.dtype]
    name = next(names)
    if ctx.chance(0.6) or site.guess.dtype is None:
        text = f"{x}.to(torch.{ctx.choose(floats, 'dtype')}).to({x}.dtype)"
        if not site.guess.floating:  # a float above 2**24 need not come back exactly, and must not overflow
            text = f"{x}.to(torch.float64).to({x}.dtype)" if site.guess.dtype else text
        new = [f"{name} = {text}"]
    else:
        integers = [] if graded else [d for d in (*tables.INTEGERS, "bool") if d != site.guess.dtype]
        dtype = ctx.choose(floats * 2 + integers, "dtype")
        if site.guess.floating and dtype in tables.INTEGERS:
            bound = "0, 100" if dtype == "uint8" else "-100, 100"
            other = next(names)
            new = [f"{other} = torch.nan_to_num({x}).clamp({bound})", f"{name} = {other}.to(torch.{dtype})"]
        elif dtype == "uint8":  # a negative integer wraps on some machines only
            new = [
                f"{name} = {x}.abs().to(torch.uint8)" if site.guess.dtype != "bool" else f"{name} = {x}.to(torch.uint8)"
            ]
        else:
            new = [f"{name} = {x}.to(torch.{dtype})"]
    changed = rewire(view, reader, x, name)
    return changed.insert(reader, *new) if changed else None


def inplace_writes(site: Site, others: Sequence[Site]) -> list[str]:
    """In-place statements that fit the tensor, as far as that is known."""
    x, guess = site.name, site.guess
    if guess.dtype == "bool":
        writes = ["{x}.logical_not_()", "{x}.zero_()", "{x}.fill_(True)"]
    elif guess.dtype in tables.INTEGERS:
        writes = ["{x}.add_(1)", "{x}.mul_(2)", "{x}.zero_()", "{x}.fill_(3)", "{x}.clamp_(0, 2)"]
    else:
        writes = [
            "{x}.add_(1)",
            "{x}.mul_(2)",
            "{x}.zero_()",
            "{x}.neg_()",
            "{x}.relu_()",
            "{x}.clamp_(-1, 1)",
        ]
        writes += ["{x}.sin_()", "{x}.copy_({x} * 2)", "{x} += 1"]
    if guess.rank:
        writes += ["{x}[0] = 1", "{x}[..., -1] = 0", "{x}[1:] = {x}[:-1].clone()"]
        if guess.shape is not None and 0 in guess.shape:
            writes = writes[:-3]
    if guess.shape is not None:
        writes += [f"{{x}}.copy_({other.name})" for other in others if other.guess == guess and other.name != x]
    return [write.format(x=x) for write in writes]


def _writable(view: ProgramView, site: Site) -> bool:
    """Not a leaf that requires a gradient, and nothing expanded: eager refuses those."""
    if view.mode in ("backward", "train"):
        return site.name not in view.params and _fresh_result(view, site.name)
    if site.name in view.params and len(view.inputs) == len(view.params):
        source = view.inputs[view.params.index(site.name)]
        return not any(source in s.targets and ("expand" in s.text or "requires_grad" in s.text) for s in view.build)
    return "expand" not in "".join(s.text for s in view.body if site.name in s.targets)


def _fresh_result(view: ProgramView, name: str) -> bool:
    """Is the name bound by an operator that returns new storage, and does not save it for its gradient?"""
    operators = {op_name(s.value) for s in view.body if name in s.targets and s.value is not None}
    return bool(operators) and operators <= {
        "sin",
        "cos",
        "add",
        "sub",
        "clone",
        "neg",
        "mul",
        "matmul",
        "mm",
    }


def insert_inplace(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A write into an intermediate or an input, somewhere between its birth and its readers."""
    found = [site for site in sites(view) if _writable(view, site)]
    if not found:
        return None
    site = ctx.rng.choice(found)
    writes = inplace_writes(site, [other for other in found if other.index == site.index])
    return view.insert(site.index, ctx.rng.choice(writes))


def copy_write_read(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Copy or view, then write to one of the two, then read the other: an order that a compiler must keep."""
    found = [site for site in sites(view) if _writable(view, site)]
    if not found:
        return None
    site = ctx.rng.choice(found)
    copies = [
        "{x}.clone()",
        "{x}.detach()",
        "{x}.view({x}.shape)",
        "{x}.contiguous()",
        "{x} + 0",
        "{x}.flatten()",
        "{x} * 1",
    ]
    copies += ["{x}.to({x}.dtype)", "{x}.unsqueeze(0)"]
    if site.guess.rank:
        copies += ["{x}.transpose(0, -1)", "{x}[1:]", "{x}[::2]", "{x}.clone()[1:]"]
    name = view.fresh_name()
    copy = ctx.rng.choice(copies).format(x=site.name)
    if site.guess.dtype == "bool":
        copy = f"{site.name}.clone()"
    writes = inplace_writes(site, [])
    if ctx.chance(0.35):
        writes = inplace_writes(Site(site.index, name, type(site.guess)(True, site.guess.dtype)), [])
    changed = view.insert(site.index, f"{name} = {copy}", ctx.rng.choice(writes))
    return add_result(changed, name)


def insert_dead(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A computation that nobody reads."""
    found = sites(view)
    if not found:
        return None
    site = ctx.rng.choice(found)
    x, name = site.name, view.fresh_name()
    texts = [
        f"{x}.clone()",
        f"{x}.sum()",
        f"torch.zeros_like({x})",
        f"{x}.unsqueeze(0)",
        f"{x}.to(torch.float64)",
    ]
    texts += [f"torch.sin({x})", f"{x} * 2"] if site.guess.floating else []
    return view.insert(site.index, f"{name} = {ctx.rng.choice(texts)}")


def duplicate(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """A pure statement is computed again under another name, which one reader takes or the program returns."""
    found = []
    for index, statement in enumerate(view.body):
        repeatable = statement.pure and isinstance(statement.node, ast.Assign) and len(statement.targets) == 1
        if repeatable and statement.targets[0] not in statement.reads:
            found.append(index)
    if not found:
        return None
    index = ctx.rng.choice(found)
    statement = view.body[index]
    assert isinstance(statement.node, ast.Assign)
    name, old = view.fresh_name(), statement.targets[0]
    value = statement.source(statement.node.value)
    later = [r for r in readers(view, old, index + 1) if r == len(view.body) or old not in view.body[r].writes]
    changed = rewire(view, ctx.rng.choice(later), old, name) if later and ctx.chance(0.6) else None
    return (changed or add_result(view, name)).insert(index + 1, f"{name} = {value}")


MUTATIONS = (
    FunctionMutation(
        "insert_view",
        "a view is put between a tensor and its reader",
        ("op_family=view", "adjacency=view>pointwise", "adjacency=view>reduction"),
        insert_view,
    ),
    FunctionMutation(
        "insert_cast",
        "a dtype conversion is put between a tensor and its reader",
        ("cast=round_trip", "cast=float_down", "cast=float_to_int", "adjacency=cast>pointwise"),
        insert_cast,
    ),
    FunctionMutation(
        "insert_inplace",
        "an intermediate or an input is written in place",
        ("topology=in_place", "mutation=inplace_method", "mutation=setitem", "topology=view_mutation"),
        insert_inplace,
    ),
    FunctionMutation(
        "copy_write_read",
        "a copy or view is taken, one of the two is written, the other is read",
        ("topology=view_mutation", "adjacency=copy>inplace", "adjacency=view>inplace"),
        copy_write_read,
    ),
    FunctionMutation("insert_dead", "a computation whose result nobody reads", ("topology=fan_out",), insert_dead),
    FunctionMutation(
        "duplicate", "a statement is computed twice", ("topology=fan_out", "topology=multi_output"), duplicate
    ),
)
