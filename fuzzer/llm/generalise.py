"""A program's body in the language of idioms (``knowledge/idioms.toml``): ``x`` its tensor, ``r`` its result."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from fuzzer.engines.view import ProgramView, ViewError, rename_text
from fuzzer.exits import UserError
from fuzzer.program import Program

_INPUTS = ("v", "w", "k", "m")
_RESULTS = ("r", "s", "t", "u")
_RANKS = ("scalar", "vector", "matrix", "cube", "image")
_MAKERS = frozenset({"randn", "rand", "zeros", "ones", "empty", "full"})
_KINDS = {
    "float32": "float32", "float64": "wide", "float16": "half", "bfloat16": "half", "int64": "int64", "bool": "bool",
    "complex64": "complex", "complex128": "complex",
}  # fmt: skip
#: Entries of META that a pattern may need; the rest describes the one program.
_META = ("mode", "random", "no_grad", "check_stride", "compile", "inductor_config", "dynamo_config", "functorch_config")


class TooInvolved(UserError):
    """The program has no simple form; the message says why."""


def templates(program: Program) -> Iterator[dict[str, Any]]:
    """Tables of ``code``, ``on``, ``inputs`` …, the most general first; whether one runs, a probe must say.

    The first replaces one input by whatever tensor of its kind and rank there is; the last keeps every input as it was.

    Raises:
        TooInvolved: more inputs than an idiom has names for, or builders that are more than expressions.
    """
    try:
        view = ProgramView.of(program)
    except ViewError as error:
        raise TooInvolved(str(error)) from None
    read = view.returns.reads.union(*(statement.reads for statement in view.body))
    made = {name: text for name, text in _inputs(view).items() if name in read}
    subjects = [(name, on) for name, text in made.items() if (on := _subject(text))]
    found = [_table(view, made, name, on) for name, on in subjects[:1]]
    found.append(_table(view, made, "", "float32 vector"))
    fitting = [table for table in found if table is not None]
    if not fitting:
        raise TooInvolved(f"{program.source}: has more inputs than the {len(_INPUTS)} that a pattern can name")
    yield from fitting


def _inputs(view: ProgramView) -> dict[str, str]:
    """Parameter of fn → the expression that makes it."""
    if view.signature is not None or view.returns.kind == "none" or view.build_returns.kind not in ("tuple", "single"):
        raise TooInvolved(f"{view.source}: fn takes or returns more than plain names")
    values: dict[str, str] = {}
    for statement in view.build:
        if statement.value is not None and len(statement.targets) == 1 and not isinstance(statement.node, ast.Expr):
            text = rename_text(ast.unparse(statement.value), {})
            values[statement.targets[0]] = _filled(text, values)
        elif "manual_seed" not in statement.text:
            raise TooInvolved(f"{view.source}: build_inputs does more than name expressions ({statement.text[:60]})")
    made = [_filled(item, values) for item in view.build_returns.items]
    if len(made) != len(view.params):
        raise TooInvolved(f"{view.source}: build_inputs and fn differ in their number of values")
    return dict(zip(view.params, made))


def _filled(text: str, values: dict[str, str]) -> str:
    """An expression with the names of earlier ones replaced by what they stand for."""

    class Fill(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            known = values.get(node.id) if isinstance(node.ctx, ast.Load) else None
            return ast.parse(f"({known})", mode="eval").body if known is not None else node

    return ast.unparse(Fill().visit(ast.parse(text, mode="eval")))


def _subject(text: str) -> str:
    """What ``x`` must be to stand for such a tensor; "" where the expression does not tell."""
    node = ast.parse(text, mode="eval").body
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in {f"torch.{name}" for name in _MAKERS}:
        return ""
    keywords = {item.arg: ast.unparse(item.value) for item in node.keywords}
    if keywords.keys() - {"dtype", "requires_grad"}:
        return ""
    sizes = list(node.args[:1] if ast.unparse(node.func) == "torch.full" else node.args)
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = list(sizes[0].elts)
    if not all(isinstance(size, ast.Constant) and isinstance(size.value, int) for size in sizes):
        return ""
    dtype = keywords.get("dtype", "torch.float32").removeprefix("torch.")
    kind = _KINDS.get(dtype, "int" if "int" in dtype else "")
    if not kind or len(sizes) >= len(_RANKS):
        return ""
    extents = [size.value for size in sizes if isinstance(size, ast.Constant)]
    more = ["empty"] if 0 in extents else ["solid"] if extents and 1 not in extents else []
    return " ".join([kind, _RANKS[len(extents)], *more])


def _table(view: ProgramView, made: dict[str, str], subject: str, on: str) -> dict[str, Any] | None:
    """The template with ``subject`` as x (or none of the inputs); None when the names do not suffice."""
    others = [name for name in made if name != subject]
    if len(others) > len(_INPUTS):
        return None
    names = {subject: "x"} if subject else {}
    names |= dict(zip(others, _INPUTS))
    bound = [name for name in view.bound_before(len(view.body)) if name not in view.params]
    # What is returned gets its letters first: ``r`` is the value of an idiom.
    results = [item if item in bound else f"({item})" for item in view.returns.items if item not in view.params]
    letters = iter([*_RESULTS, *(f"z{number}" for number in range(1, 1 + len(results) + len(bound)))])
    names |= {name: next(letters) for name in dict.fromkeys([*results, *bound])}
    lines = [line for statement in view.body for line in statement.renamed(names).text.splitlines()]
    lines += [f"{names[item]} = {rename_text(item, names)[1:-1]}" for item in results if item not in bound]
    table: dict[str, Any] = {"on": on, "code": lines}
    if others:
        table["inputs"] = {names[name]: made[name] for name in others}
    helper = [line for line in view.prelude.splitlines() if not line.startswith(("import ", "from "))]
    if any(line.strip() for line in helper):
        table["helper"] = [line for line in helper if line.strip()]
    meta = {name: view.meta[name] for name in _META if view.meta.get(name) not in (None, {}, "forward", False)}
    if meta:
        table["meta"] = meta
    if view.returns.kind == "dict":
        table["returns"] = "dict"
    return table


__all__ = ["TooInvolved", "templates"]
