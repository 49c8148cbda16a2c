"""Mutations of what goes in: shape, rank, dtype, layout, values."""

from __future__ import annotations

import ast
import dataclasses
import math

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, converts
from fuzzer.engines.mutate.guess import SHAPE_FIRST, Shape, factory_shape, guess, op_name, shape_nodes
from fuzzer.engines.mutate.sources import (
    Source,
    append,
    factory_of,
    keywords,
    needs_gradient,
    replace_factory,
    rewrite,
    sources,
    spell_random,
    spell_shape,
    spell_sizes,
    with_gradient,
    without_gradient,
)
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView

#: Around the widths of vector registers (4 to 64 lanes), of tiles (16, 32), and the degenerate sizes.
SIZES = (0, 1, 2, 3, 5, 7, 8, 15, 16, 17, 31, 33, 63, 65, 130)

#: Feature of a shape → sizes that bring it.
_SIZES_OF = {
    **{"empty": (0,), "ones": (1,), "odd": (3, 5, 7), "vector_multiple": (8, 16, 32, 64)},
    **{"vector_minus_one": (7, 15, 31, 63), "vector_plus_one": (9, 17, 33, 65), "long_row": (1030,), "tall": (1030,)},
}

#: Factories whose values a mutation may replace without losing something the author meant.
_REPLACEABLE = frozenset({"rand", "randn", "zeros", "ones", "full", "randint", "arange", "linspace", "empty"})


def change_shape(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One size of one input; the same number elsewhere follows, for equal numbers usually mean the same thing."""
    found = [s for s in sources(view) if _sizes(s.factory)]
    if not found:
        return None
    source = ctx.rng.choice(found)
    old = ctx.rng.choice([size for size, _ in _sizes(source.factory)])
    asked = [size for word in sorted(ctx.wanted("shape")) for size in _SIZES_OF.get(word, ()) if size != old]
    new = ctx.rng.choice(asked or [size for size in SIZES if size != old])
    if (
        new == 0 and not asked and ctx.chance(0.6)
    ):  # most operators refuse empty tensors in some way: worth less than a draw
        new = 1 if old != 1 else 2
    everywhere = ctx.chance(0.8)
    build = []
    for index, statement in enumerate(view.build):
        call = factory_of(statement)
        if call is not None and (everywhere or index == source.index):
            statement = _resize(statement, old, new)
        build.append(statement)
    body = tuple(_follow(s, old, new) if everywhere and old > 2 else s for s in view.body)
    return dataclasses.replace(view, build=tuple(build), body=body)


def _sizes(call: ast.Call) -> list[tuple[int, ast.expr]]:
    nodes = shape_nodes(call)
    if not nodes and op_name(call) in ("arange", "randperm") and len(call.args) == 1:
        nodes = [call.args[0]]
    elif op_name(call) == "linspace" and len(call.args) > 2:
        nodes = [call.args[2]]
    return [(n.value, n) for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int]


def _resize(statement: Statement, old: int, new: int) -> Statement:
    """Every equal size of the factory call replaced, and equal sizes of ``expand``/``view`` behind it."""
    place = 0
    while True:
        call = factory_of(statement)
        nodes = [node for size, node in _sizes(call) if size == old] if call is not None else []
        if place >= len(nodes) or old == new:
            return _follow(statement, old, new)
        statement = statement.edit(nodes[0], str(new))


def _follow(statement: Statement, old: int, new: int) -> Statement:
    """Numbers equal to the old size, in calls whose numbers are sizes."""
    while True:
        for call in ast.walk(statement.node):
            if not isinstance(call, ast.Call) or op_name(call) not in tables.SHAPED:
                continue
            nodes = [n for a in call.args for n in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
            equal = [n for n in nodes if isinstance(n, ast.Constant) and type(n.value) is int and n.value == old]
            if equal and new != old:
                statement = statement.edit(equal[0], str(new))
                break
        else:
            return statement


def change_rank(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One input, or all of its rank, gains a dimension; or one loses its first, or becomes 0-d."""
    found = [s for s in sources(view) if s.kind in (*SHAPE_FIRST, "full", "randint") and s.plain]
    found = [s for s in found if not _rank_bound(view, s.param)] or [s for s in found if ctx.chance(0.1)]
    if not found:
        return None
    source = ctx.rng.choice(found)
    if ctx.wanted("shape") & {"scalar"}:
        change = "scalar"
    else:
        change = ctx.rng.choice(["front", "front", "batch", "batch", "back", "scalar", "drop"])
    chosen = [source]
    if change in ("front", "batch") and ctx.chance(0.5):
        chosen += [s for s in found if s is not source and len(s.shape) == len(source.shape)]
    changed: ProgramView | None = view
    for one in chosen:
        shape = _other_rank(one.shape, change)
        changed = _rewrite_shape(changed, one.name, shape) if changed is not None else None
    return changed


def _rank_bound(view: ProgramView, param: str) -> bool:
    """Is the parameter read by an operator that takes one rank alone?"""
    readers = [s for s in view.body if s.simple and param in s.reads]
    return any(isinstance(s.value, ast.Call) and op_name(s.value) in tables.RANK_BOUND for s in readers)


def _other_rank(shape: Shape, change: str) -> Shape:
    if change in ("front", "batch"):
        return (1 if change == "front" else 2, *shape)
    if change == "back" or not shape:
        return (*shape, 1)
    return () if change == "scalar" else shape[1:]


def _rewrite_shape(view: ProgramView, name: str, shape: Shape) -> ProgramView | None:
    return rewrite(view, name, lambda statement, call: _reshaped(statement, call, shape))


def _reshaped(statement: Statement, call: ast.Call, shape: Shape) -> str | None:
    name = op_name(call)
    if name in SHAPE_FIRST:
        return replace_factory(statement, call, f"torch.{name}({spell_sizes(shape)}{keywords(statement, call)})")
    tuples = [a for a in call.args if isinstance(a, (ast.Tuple, ast.List))]
    return (
        replace_factory(statement, call, _with_node(statement, call, tuples[0], spell_shape(shape))) if tuples else None
    )


def _with_node(statement: Statement, call: ast.Call, node: ast.expr, text: str) -> str:
    parts = [text if argument is node else statement.source(argument) for argument in call.args]
    return f"torch.{op_name(call)}({', '.join(parts)}{keywords(statement, call)})"


def change_dtype(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One input, or all of its dtype, in another: floats from randn, integers from randint, nothing undefined."""
    found = [s for s in sources(view) if s.kind in _REPLACEABLE or s.guess.floating]
    if not found:
        return None
    source = ctx.rng.choice(found)
    graded = view.mode in ("backward", "train")
    floats = [d for d in tables.FLOATS if d != source.dtype]
    options = floats * 3
    if not graded:
        options += [*tables.INTEGERS, "bool"]
        options += tables.RARE_DTYPES if ctx.wanted("dtype") or ctx.chance(0.2) else ()
    if source.kind not in _REPLACEABLE:
        options = floats
    dtype = ctx.choose([option for option in options if option != source.dtype], "dtype")
    if source.dtype in tables.INTEGERS and not ctx.wanted("dtype") and ctx.chance(0.7):  # an index stays an index
        dtype = ctx.rng.choice([d for d in tables.INTEGERS if d != source.dtype])
    chosen = [source]
    if source.guess.floating and ctx.chance(0.5):  # matrix products and convolutions refuse a mixture
        chosen += [s for s in found if s.dtype == source.dtype and s is not source]
    changed: ProgramView | None = view
    for one in chosen:
        changed = _retype(changed, one, dtype) if changed is not None else None
    return changed


def _retype(view: ProgramView, source: Source, dtype: str) -> ProgramView | None:
    def change(statement: Statement, call: ast.Call) -> str | None:
        shape = factory_shape(call)
        if shape is None or _casts(statement):
            return None
        gradient = needs_gradient(statement) and dtype in tables.FLOATS
        plain = Statement.of(f"x = {without_gradient(_value(statement))}")
        inner = factory_of(plain)
        assert inner is not None
        if source.kind in ("rand", "zeros", "ones", "linspace") and dtype in tables.FLOATS:
            kept = ", ".join(plain.source(a) for a in inner.args) + keywords(plain, inner, frozenset({"dtype"}))
            new = f"torch.{source.kind}({kept}, dtype=torch.{dtype})"
        elif source.kind in _REPLACEABLE:
            new = spell_random(shape, dtype)
        else:
            new = f"{plain.source(inner)}.to(torch.{dtype})"
        return with_gradient(replace_factory(plain, inner, new), gradient)

    return rewrite(view, source.name, change)


def _casts(statement: Statement) -> bool:
    """Is the factory's dtype changed again behind it?"""
    methods = [
        n.func.attr for n in ast.walk(statement.node) if isinstance(n, ast.Call) and isinstance(n.func, ast.Attribute)
    ]
    return any(name in ("half", "float", "double", "bfloat16", "int", "long", "to", "bool") for name in methods)


def change_layout(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One input in another memory layout, of the same shape and kind of values."""
    found = [s for s in sources(view) if s.kind in (*SHAPE_FIRST, "full", "randint") and s.plain and s.shape]
    if not found:
        return None
    source = ctx.rng.choice(found)
    layout = ctx.choose(_layouts(source, _written(view, source.param)), "layout")
    axis = ctx.rng.randrange(len(source.shape))

    def change(statement: Statement, call: ast.Call) -> str | None:
        shape = factory_shape(call)
        if shape is None or len(shape) != len(source.shape):
            return None
        stored, suffix = _layout(layout, shape, axis)
        value = _reshaped(statement, call, stored)
        if value is None:
            return None
        return with_gradient(without_gradient(value) + suffix, needs_gradient(statement))

    return rewrite(view, source.name, change)


def _written(view: ProgramView, param: str) -> bool:
    group = view.components()
    return any(group.get(name) == group.get(param) for s in view.body for name in s.writes)


def _layouts(source: Source, written: bool) -> list[str]:
    rank = len(source.shape)
    options = ["strided_slice", "offset", "gapped"]
    options += ["transposed", "permuted"] if rank >= 2 else []
    options += ["channels_last"] * 2 if rank == 4 else ["channels_last_3d"] if rank == 5 else []
    if not written and any(size > 1 for size in source.shape):  # writing into shared elements is refused
        options.append("expanded")
    return options


def _layout(layout: str, shape: Shape, axis: int) -> tuple[Shape, str]:
    """(shape to store, suffix that brings it to ``shape``)."""
    rank = len(shape)
    if layout == "transposed":
        return (*shape[:-2], shape[-1], shape[-2]), ".t()" if rank == 2 else ".transpose(-2, -1)"
    if layout == "permuted":
        return shape[::-1], f".permute({', '.join(str(n) for n in reversed(range(rank)))})"
    if layout.startswith("channels_last"):
        return shape, f".to(memory_format=torch.{layout})"
    if layout == "expanded":
        axis = axis if shape[axis] > 1 else max(range(rank), key=lambda n: shape[n])
        return (*shape[:axis], 1, *shape[axis + 1 :]), f".expand({', '.join(map(str, shape))})"
    if layout == "offset":
        return (shape[0] + 1, *shape[1:]), "[1:]"
    if layout == "gapped":  # rows are longer than what is used of them
        return (*shape[:-1], shape[-1] + 3), f"[..., :{shape[-1]}]"
    stored = (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])
    return stored, "[..., ::2]" if axis == rank - 1 and rank > 1 else f"[{':, ' * axis}::2]"


def change_values(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One input gets special values: zeros, ties, infinities, NaN, subnormals, the ends of its integer type."""
    found = [s for s in sources(view) if s.kind in _REPLACEABLE and not s.dtype.startswith(("complex", "float8"))]
    if not found:
        return None
    source = ctx.rng.choice(found)
    if source.dtype in tables.FLOATS:
        kinds = ["zero", "ones", "arange", "negative", "ties", "denormal"] + ([] if converts(view) else ["huge"])
        if not needs_gradient(source.statement) and not converts(view):
            kinds += ["inf", "nan"] * 2
    elif source.dtype == "bool":
        kinds = ["zero", "ones"]
    else:
        kinds = ["zero", "ones", "arange", "ties", "negative", "extreme"]
        kinds = [k for k in kinds if not (source.dtype.startswith("u") and k in ("negative",))]
        if _index_like(source.factory) and not ctx.wanted("values") and ctx.chance(0.9):
            kinds = ["zero", "ties"] if _bound(source.factory) >= 3 else ["zero"]
    kind = ctx.choose(kinds, "values")
    if kind in ("inf", "nan"):
        place = "..., 0" if source.guess.rank != 0 else "..."
        sign = "-" if kind == "inf" and ctx.chance(0.3) else ""
        if any(k in source.statement.text for k in ("expand", "float8")) or 0 in source.shape:
            return None
        return append(view, source.name, f'{source.name}[{place}] = {sign}float("{kind}")')

    def change(statement: Statement, call: ast.Call) -> str | None:
        shape = factory_shape(call)
        if shape is None:
            return None
        gradient = needs_gradient(statement)
        plain = Statement.of(f"x = {without_gradient(_value(statement))}")
        inner = factory_of(plain)
        assert inner is not None
        made = guess(inner, {}).dtype or "float32"  # casts behind the factory stay
        spelled = "" if made == "float32" else f", dtype=torch.{made}"
        return with_gradient(replace_factory(plain, inner, _values(kind, shape, spelled, source.dtype)), gradient)

    return rewrite(view, source.name, change)


def _index_like(call: ast.Call) -> bool:
    """Positions are drawn from zero on; most of what reads them refuses any other number."""
    return op_name(call) == "randint" and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0


def _bound(call: ast.Call) -> int:
    high = call.args[1] if len(call.args) > 1 else None
    return int(high.value) if isinstance(high, ast.Constant) and isinstance(high.value, int) else 0


def _values(kind: str, shape: Shape, spelled: str, dtype: str) -> str:
    sizes, floating = spell_sizes(shape), dtype in tables.FLOATS
    numel = math.prod(shape)
    if kind in ("zero", "ones"):
        return f"torch.{'zeros' if kind == 'zero' else kind}({sizes}{spelled})"
    if kind == "arange":
        if dtype in ("int8", "uint8") and numel > 100:  # would wrap
            return f"torch.ones({sizes}{spelled})"
        start = f"{float(numel)}" if floating and not spelled else f"{numel}"
        return f"torch.arange({start}{spelled})" + (f".reshape({sizes})" if len(shape) != 1 else "")
    if kind == "negative":
        if floating:
            return f"-torch.rand({sizes}{spelled})"
        return f"torch.randint(-9, 0, {spell_shape(shape)}{spelled})"
    if kind == "ties":
        return f"torch.randint(0, 3, {spell_shape(shape)}{spelled or ', dtype=torch.float32'})"
    if kind == "denormal":
        tiny = {"float64": "1e-310", "float16": "1e-6"}.get(dtype, "1e-40")
        return f"(torch.randn({sizes}{spelled}) * {tiny})"
    if kind == "huge":
        return f"(torch.randn({sizes}{spelled}) * {'1e4' if dtype == 'float16' else '1e30'})"
    # Both ends of the integer type, and what lies between.
    bits = int(dtype.lstrip("uint"))
    top = 2**bits - 1 if dtype.startswith("u") else 2 ** (bits - 1) - 1
    low = 0 if dtype.startswith("u") else -top - 1
    if numel < 2 or dtype in ("uint64",):
        return f"torch.full({spell_shape(shape)}, {top if dtype != 'uint64' else 2**63 - 1}{spelled})"
    if dtype == "int64":
        return f"torch.full({spell_shape(shape)}, {top}{spelled})"
    return f"torch.randint({low}, {top + 1}, {spell_shape(shape)}{spelled})"


def _value(statement: Statement) -> str:
    assert isinstance(statement.node, ast.Assign)
    return statement.source(statement.node.value)


MUTATIONS = (
    FunctionMutation(
        "input_shape",
        "one size of an input becomes 0, 1, odd, or next to a vector width; equal sizes usually follow",
        ("shape=empty", "shape=ones", "shape=odd", "shape=vector_minus_one", "shape=vector_plus_one"),
        change_shape,
    ),
    FunctionMutation(
        "input_rank",
        "an input gains or loses a dimension, or becomes a 0-d tensor",
        ("shape=scalar", "broadcast=missing_dim", "broadcast=ones_dim", "broadcast=scalar_tensor"),
        change_rank,
    ),
    FunctionMutation(
        "input_dtype",
        "an input gets another dtype",
        ("dtype=float16", "dtype=bfloat16", "dtype=int32", "dtype=uint8", "dtype_mix=half_float"),
        change_dtype,
    ),
    FunctionMutation(
        "input_layout",
        "an input is stored transposed, permuted, expanded, with steps, at an offset, or channels-last",
        ("layout=transposed", "layout=expanded", "layout=strided_slice", "layout=gapped", "layout=offset"),
        change_layout,
    ),
    FunctionMutation(
        "input_values",
        "an input holds zeros, ties, negatives, infinities, NaN, subnormals or integer extremes",
        ("values=nan", "values=inf", "values=zero", "values=ties", "values=denormal", "values=extreme"),
        change_values,
    ),
)
