"""Plainer inputs: contiguous, float32, simple values, small shapes; fewer of them."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import Block, ProgramView
from fuzzer.reduce.recipe import Recipe, read_recipe
from fuzzer.reduce.tidy import tidied, without_unread_lines

Change = Callable[[Recipe], "Recipe | None"]

#: Sizes above this are halved as well as set to 1, 2 and 3.
_SMALL = 4


def recipes(body: Sequence[Statement]) -> dict[int, Recipe]:
    """Per statement of a builder that makes one tensor: how."""
    found: dict[int, Recipe] = {}
    for index, statement in enumerate(body):
        node = statement.node
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            recipe = read_recipe(node.value)
            if recipe is not None:
                found[index] = recipe
    return found


def rebuilt(block: Block, change: Change, only: int | None = None) -> Block:
    """A builder whose tensors (the one at ``only``, or all) are made by ``change(recipe)``; None leaves one alone."""
    body = list(block.body)
    for index, recipe in recipes(block.body).items():
        if only is None or index == only:
            changed = change(recipe)
            text = changed.text() if changed is not None else ""
            if text:
                body[index] = Statement.of(f"{block.body[index].targets[0]} = {text}")
    return Block(tuple(body), block.returns)


def _everywhere_then_singly(view: ProgramView, change: Change) -> Iterator[ProgramView]:
    """All inputs changed at once, then one at a time."""
    whole = view.with_blocks(lambda block: rebuilt(block, change))
    yield whole
    for index in recipes(view.build):
        build = rebuilt(Block(view.build, view.build_returns), change, index).body
        one = dataclasses.replace(view, build=build)
        if one != whole:
            yield one
    if view.build2 is not None:
        yield dataclasses.replace(view, build2=rebuilt(view.build2, change))


def contiguous(recipe: Recipe) -> Recipe | None:
    """The same shape and dtype, without the steps that made it non-contiguous, expanded or offset."""
    return recipe.filled(_plain_factory(recipe)) if recipe.layout else None


def in_float32(recipe: Recipe) -> Recipe | None:
    if recipe.dtype == "float32":
        return None
    return replace(recipe, dtype="float32").filled("randn" if recipe.factory == "randint" else _plain_factory(recipe))


def filled_with(factory: str) -> Change:
    """Contiguous, same shape and dtype, values from ``factory``."""

    def change(recipe: Recipe) -> Recipe | None:
        return recipe.filled(factory) if recipe.factory != factory or not recipe.plain else None

    return change


def _plain_factory(recipe: Recipe) -> str:
    """The factory of the recipe where it can be repeated with other sizes, else one of its kind."""
    if recipe.factory in ("randn", "rand", "ones", "zeros", "arange"):
        return recipe.factory
    return "randn" if recipe.floating else "randint"


def plain_layouts(view: ProgramView) -> Iterator[ProgramView]:
    yield from _everywhere_then_singly(view, contiguous)
    for index, statement in enumerate(view.build):  # what has no recipe: step by step
        for node in ast.walk(statement.node):
            inner = _inside(node)
            if inner is not None and isinstance(node, ast.expr):
                build = (*view.build[:index], statement.edit(node, statement.source(inner)), *view.build[index + 1 :])
                yield dataclasses.replace(view, build=build)


_STEPS = frozenset({"t", "transpose", "permute", "expand", "contiguous", "clone", "to", "half", "double", "bfloat16"})


def _inside(node: ast.AST) -> ast.expr | None:
    """What a layout step is applied to."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _STEPS:
        inner = node.func.value
        return None if isinstance(inner, ast.Name) and inner.id == "torch" else inner
    return node.value if isinstance(node, ast.Subscript) and not isinstance(node.value, ast.Name) else None


def plain_dtypes(view: ProgramView) -> Iterator[ProgramView]:
    """Everything in float32, in ``fn`` too; then the inputs; then one input at a time."""
    whole = view.with_blocks(lambda block: rebuilt(block, in_float32))
    yield dataclasses.replace(whole, body=tuple(Statement.of(_float32(s.text)) for s in whole.body))
    yield from _everywhere_then_singly(view, in_float32)
    for index, statement in enumerate(view.build):  # the dtype alone, whatever else the expression does
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Call) and any(keyword.arg == "dtype" for keyword in node.keywords):
                parts = [statement.source(argument) for argument in node.args]
                parts += [f"{k.arg}={statement.source(k.value)}" for k in node.keywords if k.arg not in ("dtype", None)]
                plain = statement.edit(node, f"{statement.source(node.func)}({', '.join(parts)})")
                yield dataclasses.replace(view, build=(*view.build[:index], plain, *view.build[index + 1 :]))


_OTHER_DTYPE = re.compile(r"\btorch\.(float16|bfloat16|float64|half|double)\b")


def _float32(text: str) -> str:
    text = re.sub(r"\.(half|double|bfloat16)\(\)", ".float()", text)
    return _OTHER_DTYPE.sub("torch.float32", text)


def plain_values(view: ProgramView) -> Iterator[ProgramView]:
    """Ones, then 0, 1, 2, …, then normal numbers."""
    for factory in ("ones", "arange", "randn", "randint"):
        yield from _everywhere_then_singly(view, filled_with(factory))


def smaller_sizes(view: ProgramView) -> Iterator[ProgramView]:
    """One size replaced wherever it is spelt, in builders and ``fn``; then in the builders; then at one place."""
    sizes = sorted({size for recipe in recipes(view.build).values() for size in recipe.shape}, reverse=True)
    sizes = sorted({*sizes, *_numbers(view.build)}, reverse=True)
    large = [size for size in sizes if size > 3]
    if len(large) > 1:
        yield _resized(view, dict.fromkeys(large, 2), everywhere=True)
        yield _resized(view, dict.fromkeys(large, 3), everywhere=True)
    for size in sizes:
        for small in _smaller(size):
            yield _resized(view, {size: small}, everywhere=True)
            yield _resized(view, {size: small}, everywhere=False)
    for index, recipe in recipes(view.build).items():
        for place, size in enumerate(recipe.shape):
            for small in _smaller(size):
                shape = (*recipe.shape[:place], small, *recipe.shape[place + 1 :])
                yield _with_shape(view, index, recipe, shape)


def fewer_dimensions(view: ProgramView) -> Iterator[ProgramView]:
    """The leading dimension dropped from all inputs of the highest rank, then from one input; scalars last."""
    found = recipes(view.build)
    highest = max((len(recipe.shape) for recipe in found.values()), default=0)
    if highest:
        yield view.with_blocks(
            lambda block: rebuilt(block, lambda r: _dropped(r, 0) if len(r.shape) == highest else None)
        )
    for index, recipe in found.items():
        for place in {0, len(recipe.shape) - 1} if recipe.shape else ():
            shape = recipe.shape[:place] + recipe.shape[place + 1 :]
            yield _with_shape(view, index, recipe, shape)


def _dropped(recipe: Recipe, place: int) -> Recipe:
    shape = recipe.shape[:place] + recipe.shape[place + 1 :]
    return replace(recipe, shape=shape).filled(_plain_factory(recipe))


def _with_shape(view: ProgramView, index: int, recipe: Recipe, shape: tuple[int, ...]) -> ProgramView:
    """One input of another shape: contiguous, for its layout steps were written for the old one."""
    made = replace(recipe, shape=shape).filled(_plain_factory(recipe))
    block = rebuilt(Block(view.build, view.build_returns), lambda _recipe: made, index)
    return dataclasses.replace(view, build=block.body)


def _smaller(size: int) -> list[int]:
    half = [size // 2] if size > _SMALL else []
    return [small for small in dict.fromkeys((1, 2, 3, *half)) if small < size]


def _numbers(body: Sequence[Statement]) -> set[int]:
    nodes = (node for statement in body for node in ast.walk(statement.node))
    return {node.value for node in nodes if isinstance(node, ast.Constant) and type(node.value) is int}


def resized_text(statement: Statement, sizes: dict[int, int]) -> Statement:
    """Whole numbers replaced, those in strings and seeds excepted."""
    if "manual_seed" in statement.text:
        return statement
    spans = [
        (node, sizes[node.value])
        for node in ast.walk(statement.node)
        if isinstance(node, ast.Constant) and type(node.value) is int and node.value in sizes
    ]
    for node, size in sorted(spans, key=lambda pair: (pair[0].lineno, pair[0].col_offset), reverse=True):
        statement = statement.edit(node, str(size))  # from the end, so that earlier positions stay true
    return statement


def _resized(view: ProgramView, sizes: dict[int, int], everywhere: bool) -> ProgramView:
    changed = view.with_blocks(lambda block: Block(tuple(resized_text(s, sizes) for s in block.body), block.returns))
    if everywhere:
        changed = dataclasses.replace(changed, body=tuple(resized_text(s, sizes) for s in changed.body))
    return changed


def one_input_for_two(view: ProgramView) -> Iterator[ProgramView]:
    """An input read in place of another."""
    for kept in view.params:
        for gone in view.params:
            if kept != gone:
                mapping = {gone: kept}
                body = tuple(statement.renamed(mapping) for statement in view.body)
                returns = view.returns.map(lambda text, mapping=mapping: mapping.get(text, text))
                shorter = tidied(dataclasses.replace(view, body=body, returns=returns))
                yield shorter.with_blocks(without_unread_lines)
