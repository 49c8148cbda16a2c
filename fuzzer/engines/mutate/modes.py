"""Mutations of how a program runs: gradients, dynamic shapes, gradient mode, autocast, compiler options."""

from __future__ import annotations

import ast
import dataclasses
from typing import Any

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext
from fuzzer.engines.mutate.guess import factory_shape, guess_names, op_name, shape_nodes
from fuzzer.engines.mutate.sources import factory_of, needs_gradient, sources, with_gradient, without_gradient
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView

#: Options of ``torch._inductor.config`` (2.4 to 2.13) that choose between ways of computing the same: what to
#: fuse, how to vectorise, when to store. None is documented to change a value. Values unlike the default are
#: listed; ``None`` means an absent key. ``cpp.simdlen`` 0 and 1 give scalar code, other numbers are vector bits.
INDUCTOR_OPTIONS: dict[str, tuple[Any, ...]] = {
    "cpp.threads": (1, 2, 4),
    "cpp.simdlen": (0, 1, 256, 512),
    "cpp.min_chunk_size": (1, 16, 4096),
    "cpp.dynamic_threads": (True,),
    "cpp.no_redundant_loops": (False,),
    "cpp.max_horizontal_fusion_size": (0, 1, 4),
    "cpp.fallback_scatter_reduce_sum": (False,),
    "cpp.enable_tiling_heuristics": (False,),
    "cpp.enable_loop_tail_vec": (False,),
    "max_fusion_size": (1, 2, 4),
    "epilogue_fusion": (False,),
    "prologue_fusion": (False,),
    "split_reductions": (False,),
    "fallback_random": (True,),
    "reorder_for_locality": (False,),
    "reorder_for_peak_memory": (False,),
    "loop_ordering_after_fusion": (True, False),
    "pattern_matcher": (False,),
    "split_cat_fx_passes": (False,),
    "joint_graph_constant_folding": (False,),
    "inplace_buffers": (False,),
    "allow_buffer_reuse": (False,),
    "memory_planning": (True,),
    "realize_reads_threshold": (0, 1, 100),
    "realize_opcount_threshold": (1, 1000),
    "realize_acc_reads_threshold": (1, 100),
    "unroll_reductions_threshold": (0, 1, 64),
    "max_pointwise_cat_inputs": (0, 1),
    "layout_optimization": (False,),
    "permute_fusion": (True,),
    "aggressive_fusion": (True,),
    "comprehensive_padding": (False,),
    "pick_loop_orders": (False,),
    "size_asserts": (False,),
    "cpp_wrapper": (True,),
}

#: Feature of the configuration → the option that brings it.
_CONFIG_OF: dict[str, tuple[str, tuple[Any, ...]]] = {
    "threads2": ("cpp.threads", (2,)),
    "scalar": ("cpp.simdlen", (0,)),
    "vector256": ("cpp.simdlen", (256,)),
    "small_fusion": ("max_fusion_size", (1, 2)),
    "no_epilogue_fusion": ("epilogue_fusion", (False,)),
    "no_inplace_buffers": ("inplace_buffers", (False,)),
    "no_pattern_matcher": ("pattern_matcher", (False,)),
    "aggressive_fusion": ("aggressive_fusion", (True,)),
    "cpp_wrapper": ("cpp_wrapper", (True,)),
}


def toggle_backward(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Gradients are asked for, of every floating input; or no longer."""
    if view.mode == "backward":
        changed = view.with_blocks(
            lambda block: Block(tuple(_ungraded(statement) for statement in block.body), block.returns)
        )
        return dataclasses.replace(changed, meta={**view.meta, "mode": "forward"})
    if view.mode != "forward" or view.meta.get("no_grad") or any("no_grad" in s.text for s in view.body):
        return None
    floating = {s.name for s in sources(view) if s.guess.floating and not needs_gradient(s.statement)}
    params = {s.param for s in sources(view) if s.name in floating}
    if not floating or any(s.writes & params for s in view.body) or _writes_views(view, params):
        return None

    def block(old: Block) -> Block:
        body = list(old.body)
        for name in sorted(floating):
            place = max((i for i, s in enumerate(body) if name in s.targets), default=None)
            if place is None:
                continue
            statement = body[place]
            if isinstance(statement.node, ast.Assign) and factory_of(statement) is not None:
                body[place] = Statement.of(_graded(statement))
        return Block(tuple(body), old.returns)

    return dataclasses.replace(view.with_blocks(block), meta={**view.meta, "mode": "backward"})


def _graded(statement: Statement) -> str:
    assert isinstance(statement.node, ast.Assign)
    return f"{statement.targets[0]} = {with_gradient(statement.source(statement.node.value), True)}"


def _ungraded(statement: Statement) -> Statement:
    return Statement.of(without_gradient(statement.text)) if needs_gradient(statement) else statement


def _writes_views(view: ProgramView, params: set[str]) -> bool:
    """Is anything written that a view of a leaf may be?"""
    alias = set(params)
    for statement in view.body:
        value = statement.value
        viewing = isinstance(value, (ast.Subscript, ast.Name, ast.Attribute))
        viewing = viewing or (value is not None and op_name(value) in tables.VIEWS)
        if viewing and statement.reads & alias:
            alias |= set(statement.targets)
        if statement.writes & alias:
            return True
    return False


def toggle_dynamic(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Symbolic sizes, with a second call whose inputs differ in one size; or static again."""
    if view.mode == "dynamic":
        return dataclasses.replace(view, meta={**view.meta, "mode": "forward"}, build2=None)
    if view.mode != "forward":
        return None
    meta = {**view.meta, "mode": "dynamic"}
    if view.build2 is not None:
        return dataclasses.replace(view, meta=meta)
    sizes = sorted(
        {
            size.value
            for source in sources(view)
            for size in shape_nodes(source.factory)
            if isinstance(size, ast.Constant) and type(size.value) is int and size.value > 1
        }
    )
    sizes = sorted(set(sizes) - _written_sizes(view))
    if not sizes:
        return dataclasses.replace(view, meta=meta)
    old = ctx.rng.choice(sizes)
    new = ctx.rng.choice([size for size in (old + 1, old - 1, 2 * old, old + 5) if size > 1])
    body = tuple(_resized(statement, old, new) for statement in view.build)
    return dataclasses.replace(view, meta=meta, build2=Block(body, view.build_returns))


def _written_sizes(view: ProgramView) -> set[int]:
    """Sizes that fn itself spells out; all of them where it reshapes to literals alone, for then every size counts."""
    found: set[int] = set()
    for node in (n for statement in view.body for n in ast.walk(statement.node)):
        if isinstance(node, ast.Call) and op_name(node) in tables.SHAPED:
            parts = [e for a in node.args for e in (a.elts if isinstance(a, (ast.Tuple, ast.List)) else [a])]
            literals = {e.value for e in parts if isinstance(e, ast.Constant) and type(e.value) is int}
            if op_name(node) in ("view", "reshape") and len(literals) and len(parts) == len(node.args):
                literals |= {size for source in sources(view) for size in source.shape}
            found |= literals
    return found


def _resized(statement: Statement, old: int, new: int) -> Statement:
    """Sizes equal to ``old`` replaced, those of an ``expand`` or a slice behind the factory too."""
    raw = statement.text
    call = factory_of(statement)
    if call is None or factory_shape(call) is None:
        return statement
    low_high = {id(a) for a in call.args if op_name(call) == "randint" and not isinstance(a, (ast.Tuple, ast.List))}
    nodes = [
        node
        for node in ast.walk(statement.node)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value == old and id(node) not in low_high
    ]
    if op_name(call) == "full":
        nodes = [node for node in nodes if node not in call.args[1:]]
    for node in sorted(nodes, key=lambda n: n.col_offset, reverse=True):
        raw = raw[: node.col_offset] + str(new) + raw[node.end_col_offset :]
    return Statement.of(raw)


def toggle_no_grad(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """The whole program, or part of it, runs without recording gradients."""
    if view.mode in ("backward", "train"):
        return None
    if view.meta.get("no_grad"):
        return dataclasses.replace(view, meta={k: v for k, v in view.meta.items() if k != "no_grad"})
    if ctx.chance(0.4) or not view.body:
        return dataclasses.replace(view, meta={**view.meta, "no_grad": True})
    return wrap_with(view, "torch.no_grad()", ctx)


def wrap_autocast(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """Part of fn runs under autocast, which casts the arguments of matmuls, convolutions and losses."""
    written = any("autocast" in statement.text for statement in view.body)  # META names features, too
    if not view.body or written or not any(g.floating for g in guess_names(view).values()):
        return None
    dtype = ctx.choose(["bfloat16", "bfloat16", "float16"], "dtype")
    return wrap_with(view, f'torch.autocast("cpu", dtype=torch.{dtype})', ctx)


def wrap_with(view: ProgramView, manager: str, ctx: MutationContext) -> ProgramView:
    """Some consecutive statements under a context manager; their names stay visible behind it."""
    start = ctx.rng.randrange(len(view.body))
    stop = ctx.rng.randrange(start, len(view.body)) + 1
    inner = "".join(f"\n    {line}" for s in view.body[start:stop] for line in s.text.splitlines())
    block = Statement.of(f"with {manager}:{inner}")
    return dataclasses.replace(view, body=(*view.body[:start], block, *view.body[stop:]))


def change_config(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One option of Inductor that must not change what is computed."""
    config = dict(view.meta.get("inductor_config", {}))
    if config and ctx.chance(0.2):
        config.pop(ctx.rng.choice(sorted(config)))
    else:
        asked = [_CONFIG_OF[word] for word in sorted(ctx.wanted("config")) if word in _CONFIG_OF]
        key, values = ctx.rng.choice(asked or sorted(INDUCTOR_OPTIONS.items()))
        values = tuple(value for value in values if config.get(key) is not value)
        if not values:
            return None
        config[key] = ctx.rng.choice(values)
    meta = {key: value for key, value in view.meta.items() if key != "inductor_config"}
    return dataclasses.replace(view, meta={**meta, "inductor_config": config} if config else meta)


MUTATIONS = (
    FunctionMutation("toggle_backward", "gradients are asked for, or no longer", ("mode=backward",), toggle_backward),
    FunctionMutation(
        "toggle_dynamic",
        "symbolic sizes with a second call of another size, or static again",
        ("mode=dynamic", "context=second_call"),
        toggle_dynamic,
    ),
    FunctionMutation("toggle_no_grad", "all or part runs under torch.no_grad", ("context=no_grad",), toggle_no_grad),
    FunctionMutation("wrap_autocast", "part of the program runs under autocast", ("context=autocast",), wrap_autocast),
    FunctionMutation(
        "inductor_config",
        "a compiler option that must not change results is set or unset",
        tuple(f"config={word}" for word in _CONFIG_OF),
        change_config,
    ),
)
