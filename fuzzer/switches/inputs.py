"""Without a feature of the inputs: dtype, layout, shape, values.

Dtypes and layouts are changed by a line behind the finished inputs, which keeps their values; shapes and values by
writing the builder anew, where it spells its tensors out.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

from fuzzer.engines.block import Block
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView
from fuzzer.reduce import inputs
from fuzzer.reduce.recipe import Recipe
from fuzzer.switches.reading import of_families

#: Words of the dimension ``dtype`` → dtypes.
_DTYPES: Mapping[str, tuple[str, ...]] = {
    "float8": ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"),
    "wide_unsigned": ("uint16", "uint32", "uint64"),
}
_INTEGERS = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool"})
_METHODS = {
    "float16": "half", "bfloat16": "bfloat16", "float64": "double", "int32": "int", "int64": "long", "int16": "short",
    "int8": "char", "uint8": "byte", "bool": "bool",
}  # fmt: skip


def dtype(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Everything of the dtype in float32, in ``fn`` too; integers in another width where float32 is refused."""
    if value == "float32":
        return
    given = _DTYPES.get(value, (value,))
    yield _in_dtype(view, given, "float32")
    if set(given) <= _INTEGERS:
        yield _in_dtype(view, given, "int32" if value == "int64" else "int64")


def _in_dtype(view: ProgramView, given: tuple[str, ...], plain: str) -> ProgramView:
    dtypes = "".join(f"torch.{name}, " for name in given)
    rewritten = _converted(view, f"{{0}}.detach().to(torch.{plain})", f"{{0}}.dtype in ({dtypes.strip()})")
    pattern = re.compile(rf"\btorch\.({'|'.join(map(re.escape, given))})\b")
    method = "float" if plain == "float32" else _METHODS[plain]

    def plainer(statement: Statement) -> Statement:
        text = pattern.sub(f"torch.{plain}", statement.text)
        for name in given:
            if name in _METHODS:
                text = text.replace(f".{_METHODS[name]}()", f".{method}()")
        return Statement.of(text)

    return dataclasses.replace(rewritten, body=tuple(plainer(statement) for statement in rewritten.body))


def layout(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Contiguous inputs; then a contiguous copy of every view in ``fn``, too."""
    if value == "contiguous":
        return
    rewritten = _converted(view, "{0}.detach().clone(memory_format=torch.contiguous_format)")
    yield rewritten
    body: list[Statement] = []
    views = set(of_families(view, frozenset({"view"})))
    for index, statement in enumerate(view.body):
        body.append(statement)
        named = isinstance(statement.node, ast.Assign) and len(statement.targets) == 1 and index in views
        if named:
            name = statement.targets[0]
            body.append(Statement.of(f"{name} = {name}.contiguous()"))
    yield dataclasses.replace(rewritten, body=tuple(body))


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


def shape(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Sizes of the inputs only; then every such number of the program, so that sizes in arguments agree."""
    change = _SIZES.get(value)
    if change is not None:
        yield view.with_blocks(lambda block: inputs.rebuilt(block, lambda recipe: _resized(recipe, change)))
        sizes = {size: change(size) for size in _numbers(view) if change(size) != size}
        body = tuple(inputs.resized_text(statement, sizes) for statement in view.body)
        build = view.with_blocks(
            lambda block: Block(tuple(inputs.resized_text(item, sizes) for item in block.body), block.returns)
        )
        yield dataclasses.replace(build, body=body)
    elif value == "scalar":
        yield view.with_blocks(
            lambda block: inputs.rebuilt(
                block, lambda r: dataclasses.replace(r, shape=(3,)).filled("randn") if not r.shape else None
            )
        )
        yield _converted(view, "{0}.detach().reshape(1)", "{0}.dim() == 0")
    elif value == "high_rank":
        yield view.with_blocks(lambda block: inputs.rebuilt(block, _flatter))


def _numbers(view: ProgramView) -> set[int]:
    """Numbers that are sizes of inputs."""
    return {size for recipe in inputs.recipes(view.build).values() for size in recipe.shape}


def _flatter(recipe: Recipe) -> Recipe | None:
    """Rank 4: the leading sizes dropped."""
    if len(recipe.shape) < 5:
        return None
    return dataclasses.replace(recipe, shape=recipe.shape[-4:]).filled("randn" if recipe.floating else "randint")


def _resized(recipe: Recipe, change: Callable[[int], int]) -> Recipe | None:
    sizes = tuple(change(size) for size in recipe.shape)
    if sizes == recipe.shape:
        return None
    factory = recipe.factory if recipe.factory in ("randn", "rand", "ones", "zeros", "arange") else ""
    return dataclasses.replace(recipe, shape=sizes).filled(factory or ("randn" if recipe.floating else "randint"))


def values(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Normal numbers, or 0 and 1, in place of the values of every input."""

    def change(recipe: Recipe) -> Recipe | None:
        factory = "randn" if recipe.floating else "randint"
        return recipe.filled(factory) if recipe.values or recipe.factory != factory else None

    rewritten = view.with_blocks(lambda block: inputs.rebuilt(block, change))
    if rewritten == view and value != "negative":  # what randn makes is negative as well
        rewritten = _converted(view, "torch.randn_like({0}.detach())", "{0}.is_floating_point()")
    yield rewritten


def _converted(view: ProgramView, expression: str, test: str = "") -> ProgramView:
    """Every tensor among the finished inputs (for which ``test`` holds) by an expression of it, gradients as asked."""

    def extend(block: Block) -> Block:
        if block.returns.kind != "tuple" or not all(item.isidentifier() for item in block.returns.items):
            return block
        lines = []
        for name in block.returns.items:
            condition = f"isinstance({name}, torch.Tensor)" + (f" and {test.format(name)}" if test else "")
            made = expression.format(name)
            gradient = f".requires_grad_({name}.requires_grad)" if "float" in made or not test else ""
            lines.append(Statement.of(f"{name} = {made}{gradient} if {condition} else {name}"))
        return Block((*block.body, *lines), block.returns)

    return view.with_blocks(extend)
