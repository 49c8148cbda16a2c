"""Essential features: which properties of a failing program does the failure need? Each is switched off in turn.

Switching is a transformation of the program; whether the fault is still there is asked of a predicate. What cannot be
asked, since the program without the feature is refused by eager as well, is neither needed nor free: it is untold.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.reduce import inputs, options
from fuzzer.reduce.recipe import Recipe
from fuzzer.reduce.tidy import tidied

#: True: fails without it. False: passes. None: cannot be told.
Ask = Callable[[Program], Awaitable["bool | None"]]

#: One program may have a dozen features; each costs an execution.
_MOST = 16

#: In-place methods whose plain form is another function or none.
_NO_PLAIN_FORM = frozenset(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "requires_grad_", "set_", "resize_", "data_"}
)


@dataclass(frozen=True)
class Essential:
    """Ids of features (``dimension=value``). ``free``: the fault shows without them as well."""

    needed: tuple[str, ...] = ()
    free: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    executions: int = 0

    def to_map(self) -> dict[str, Any]:
        """The part of ``Finding.triage`` that this fills."""
        return {
            "essential_features": list(self.needed),
            "free_features": list(self.free),
            "untold_features": list(self.untold),
        }


async def essential_features(
    program: Program, realised: Iterable[str], ask: Ask, enough: Callable[[], bool] = lambda: False
) -> Essential | None:
    """Switch each realised feature that can be switched off in turn; None when ``enough`` came first."""
    found: dict[bool | None, list[str]] = {True: [], False: [], None: []}
    tried = 0
    for feature, changed in switches(program, realised):
        if enough():
            return None
        tried += 1
        found[await ask(changed)].append(feature)
    return Essential(tuple(found[False]), tuple(found[True]), tuple(found[None]), tried)


def switches(program: Program, realised: Iterable[str]) -> list[tuple[str, Program]]:
    """(feature, the program without it), for those of the realised features that a transformation can remove."""
    try:
        view = ProgramView.of(program).normalise()
    except ViewError:
        return []
    plain = view.to_text()
    pairs: list[tuple[str, Program]] = []
    for feature in sorted(set(realised)):
        for changed in _without(view, feature):
            try:
                without = changed.to_program()
            except (UserError, SyntaxError):
                continue
            if without.text != plain:
                pairs.append((feature, without))
                break
    return pairs[:_MOST]


def _without(view: ProgramView, feature: str) -> Iterator[ProgramView]:
    """Ways to be rid of a feature, the best first."""
    dimension, _, value = feature.partition("=")
    switch = _SWITCHES.get(dimension)
    if switch is not None:
        yield from switch(view, value)


def _dtype(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value == "float32":
        return

    def change(recipe: Recipe) -> Recipe | None:
        fits = recipe.dtype == value or (value == "float8" and recipe.dtype.startswith("float8"))
        return inputs.in_float32(recipe) if fits else None

    changed = view.with_blocks(lambda block: inputs.rebuilt(block, change))
    pattern = re.compile(rf"\btorch\.{re.escape(value)}\b")
    yield dataclasses.replace(
        changed, body=tuple(Statement.of(pattern.sub("torch.float32", s.text)) for s in changed.body)
    )


def _layout(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value != "contiguous":
        yield view.with_blocks(lambda block: inputs.rebuilt(block, inputs.contiguous))


#: Shape class → what a size of that class becomes.
_SIZES: Mapping[str, Callable[[int], int]] = {
    "ones": lambda size: 2 if size == 1 else size,
    "empty": lambda size: 2 if size == 0 else size,
    "odd": lambda size: size + 1 if size > 1 and size % 2 else size,
    "vector_multiple": lambda size: 5 if size >= 8 and size % 8 == 0 else size,
    "vector_minus_one": lambda size: 5 if size in (7, 15, 31) else size,
    "vector_plus_one": lambda size: 5 if size in (9, 17, 33) else size,
    "large": lambda size: 5 if size > 5 else size,
    "long_row": lambda size: 5 if size > 5 else size,
    "tall": lambda size: 5 if size > 5 else size,
}


def _shape(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Sizes of the inputs only first; then every such number of the program, so that sizes in arguments agree."""
    change = _SIZES.get(value)
    if change is not None:
        yield view.with_blocks(lambda block: inputs.rebuilt(block, lambda recipe: _resized(recipe, change)))
    elif value == "scalar":
        yield view.with_blocks(
            lambda block: inputs.rebuilt(
                block, lambda r: dataclasses.replace(r, shape=(3,)).filled("randn") if not r.shape else None
            )
        )


def _resized(recipe: Recipe, change: Callable[[int], int]) -> Recipe | None:
    shape = tuple(change(size) for size in recipe.shape)
    if shape == recipe.shape:
        return None
    factory = recipe.factory if recipe.factory in ("randn", "rand", "ones", "zeros", "arange") else ""
    return dataclasses.replace(recipe, shape=shape).filled(factory or ("randn" if recipe.floating else "randint"))


def _values(view: ProgramView, value: str) -> Iterator[ProgramView]:
    def change(recipe: Recipe) -> Recipe | None:
        factory = "randn" if recipe.floating else "randint"
        return recipe.filled(factory) if recipe.values or recipe.factory != factory else None

    yield view.with_blocks(lambda block: inputs.rebuilt(block, change))


def _mode(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value != "forward":
        yield options.with_mode(view, "forward")


def _context(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value in view.meta:
        yield dataclasses.replace(view, meta={key: item for key, item in view.meta.items() if key != value})
    elif value == "second_call":
        yield dataclasses.replace(view, build2=None)
    else:
        yield from _unnested(view, ast.With, value)


#: Words of the dimension ``config`` → the option, as written in META.
_CONFIG: Mapping[str, tuple[str, ...]] = {
    "threads2": ("cpp.threads",), "scalar": ("cpp.simdlen",), "vector256": ("cpp.simdlen",),
    "freezing": ("freezing",), "cpp_wrapper": ("cpp_wrapper",), "no_epilogue_fusion": ("epilogue_fusion",),
    "no_inplace_buffers": ("inplace_buffers",), "small_fusion": ("max_fusion_size",),
    "aggressive_fusion": ("aggressive_fusion",), "no_pattern_matcher": ("pattern_matcher",),
    "free_output_stride": ("keep_output_stride",), "emulate_casts": ("emulate_precision_casts",),
    "fullgraph": ("fullgraph",), "compile_dynamic": ("dynamic",), "static_shapes": ("dynamic",),
    "capture_scalars": ("capture_scalar_outputs",), "capture_dynamic_shapes": ("capture_dynamic_output_shape_ops",),
}  # fmt: skip


def _config(view: ProgramView, value: str) -> Iterator[ProgramView]:
    meta = {key: _pruned(item, _CONFIG.get(value, ())) for key, item in view.meta.items()}
    yield dataclasses.replace(view, meta={key: item for key, item in meta.items() if item != {}})


def _pruned(item: Any, names: tuple[str, ...]) -> Any:
    if not isinstance(item, Mapping):
        return item
    return {key: _pruned(inner, names) for key, inner in item.items() if key not in names}


#: Control-flow words → the statements.
_CONTROL: Mapping[str, type[ast.stmt]] = {
    "if_data": ast.If, "if_static": ast.If, "for_loop": ast.For, "while": ast.While, "try": ast.Try, "with": ast.With,
}  # fmt: skip


def _control(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value in _CONTROL:
        yield from _unnested(view, _CONTROL[value], "")


def _unnested(view: ProgramView, kind: type[ast.stmt], word: str) -> Iterator[ProgramView]:
    """The first block in place of every statement of a kind (whose text holds the word)."""
    body: list[Statement] = []
    for statement in view.body:
        if isinstance(statement.node, kind) and word in statement.text:
            body += [Statement.of(ast.unparse(node)) for node in getattr(statement.node, "body", ())]
        else:
            body.append(statement)
    yield tidied(dataclasses.replace(view, body=tuple(body)))


def _mutation(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Out-of-place forms: ``x.add_(y)`` as ``x = x.add(y)``, ``x += y`` as ``x = x + y``."""
    body = tuple(Statement.of(_out_of_place(statement)) for statement in view.body)
    yield dataclasses.replace(view, body=body)


def _out_of_place(statement: Statement) -> str:
    node = statement.node
    if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
        name = node.target.id
        return ast.unparse(ast.Assign([ast.Name(name)], ast.BinOp(ast.Name(name), node.op, node.value), lineno=1))
    call = statement.value
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        return statement.text
    method, owner = call.func.attr, call.func.value
    if not method.endswith("_") or method.endswith("__") or method in _NO_PLAIN_FORM or not isinstance(owner, ast.Name):
        return statement.text
    if owner.id == "torch":  # torch.relu_(x)
        return statement.text.replace(f".{method}(", f".{method[:-1]}(", 1)
    plain = statement.edit(call.func, f"{owner.id}.{method[:-1]}").text
    return plain if isinstance(node, ast.Assign) else f"{owner.id} = {plain}"


_SWITCHES: Mapping[str, Callable[[ProgramView, str], Iterator[ProgramView]]] = {
    "dtype": _dtype,
    "layout": _layout,
    "shape": _shape,
    "values": _values,
    "mode": _mode,
    "context": _context,
    "config": _config,
    "control": _control,
    "mutation": _mutation,
}
