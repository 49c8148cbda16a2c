"""Mutations of the operators themselves: another operator, another argument, a keyword more or less."""

from __future__ import annotations

import ast
import re
from functools import lru_cache
from typing import Any

from fuzzer.engines.mutate import tables
from fuzzer.engines.mutate.base import FunctionMutation, MutationContext, calls, converts
from fuzzer.engines.mutate.guess import Guess, guess, guess_names, is_method, op_name, tensor_arguments
from fuzzer.engines.statement import Statement, words
from fuzzer.engines.view import ProgramView

_SYMBOLS: dict[type, str] = {
    **{ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%"},
    **{ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>"},
    **{ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="},
}


def replace_operator(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One operator becomes a functional neighbour; the arguments stay as they are."""
    options: list[tuple[int, Statement]] = []
    for index, statement in enumerate(view.body):
        value = statement.node.value if statement.simple else None  # type: ignore[attr-defined]
        new: list[Statement] = []
        if isinstance(value, ast.Call):
            new = [statement.edit(value.func, text) for text in _other_callees(statement, value, ctx.operators)]
        elif isinstance(value, (ast.BinOp, ast.Compare)):
            new = _other_symbols(statement, value, guess_names(view, index))
        if new:
            options.append((index, ctx.rng.choice(new)))
    if not options:
        return None
    index, changed = ctx.rng.choice(options)
    return view.with_statement(index, changed)


def _other_callees(statement: Statement, call: ast.Call, operators: Any) -> list[str]:
    if not isinstance(call.func, ast.Attribute):
        return []
    name, method = op_name(call), is_method(call)
    inplace = call.func.attr.endswith("_")
    prefix = statement.source(call.func.value)
    if operators is not None:
        found = _catalogue_callees(prefix, call, method, operators)
        if found:
            return found
    others = {other for group in tables.NEIGHBOURS if name in group for other in group} - {name}
    if method and name in _FUNCTIONAL_ONLY:
        return []
    if method or inplace:
        others -= _FUNCTIONAL_ONLY
    return sorted(f"{_prefix(prefix, other, method)}.{other}{'_' if inplace else ''}" for other in others)


#: These have no method form.
_FUNCTIONAL_ONLY = words(
    "gelu silu elu softplus mish hardtanh hardswish relu6 leaky_relu selu cat concat concatenate softmin max_pool1d "
    "avg_pool1d max_pool2d avg_pool2d max_pool3d avg_pool3d adaptive_avg_pool1d adaptive_max_pool1d "
    "adaptive_avg_pool2d adaptive_max_pool2d mse_loss l1_loss smooth_l1_loss huber_loss alias"
)
#: These live in torch.nn.functional alone.
_IN_NN = _FUNCTIONAL_ONLY - {"cat", "concat", "concatenate", "alias", "selu"}


def _prefix(prefix: str, name: str, method: bool) -> str:
    if method or prefix not in ("torch", "F", "torch.nn.functional", "nn.functional"):
        return prefix
    if name in _IN_NN:
        return prefix if prefix != "torch" else "torch.nn.functional"
    return "torch" if name not in ("softmax", "log_softmax", "relu", "selu") else prefix


def _catalogue_callees(prefix: str, call: ast.Call, method: bool, operators: Any) -> list[str]:
    """The nearest neighbours from the operator records, in the same form as the call at hand."""
    assert isinstance(call.func, ast.Attribute)
    attribute = call.func.attr
    kind = ("inplace" if attribute.endswith("_") else "method") if method else "function"
    full = {"F": "torch.nn.functional", "nn.functional": "torch.nn.functional"}.get(prefix, prefix)
    wanted = attribute if method else f"{full}.{attribute}"
    found: dict[str, None] = {}
    for operator in _by_callee(operators).get((kind, wanted), ()):
        near = [other for other in operators.neighbours(operator) if _takes(other, call)]
        for other in near[:NEAREST]:
            found.update(dict.fromkeys(_callees(other, kind)))
    found.pop(wanted, None)
    if method:
        return [f"{prefix}.{text}" for text in found]
    return [text.replace("torch.nn.functional.", "F.") if prefix == "F" else text for text in found]


def _takes(operator: Any, call: ast.Call) -> bool:
    """Is there a recorded call with the same arguments by position, tensors for tensors, and these keywords?"""
    if getattr(operator, "random", False):
        return False
    arguments = tensor_arguments(call)
    literal = [not isinstance(argument, (ast.Name, ast.Starred)) for argument in arguments]
    names = {keyword.arg for keyword in call.keywords}
    recorded = getattr(operator, "calls", None)
    return recorded is None or any(
        len(known.args) == len(arguments)
        and names <= set(known.kwargs)
        and all(written == hasattr(wanted, "text") for written, wanted in zip(literal, known.args))
        for known in recorded
    )


#: Neighbours are sorted by likeness; what follows the first few shares little but the family.
NEAREST = 6


@lru_cache(maxsize=4)
def _by_callee(operators: Any) -> dict[tuple[str, str], list[Any]]:
    """(kind of form, callee) → operators."""
    table: dict[tuple[str, str], list[Any]] = {}
    for operator in operators.by_key.values():
        for kind in ("function", "method", "inplace"):
            for callee in _callees(operator, kind):
                table.setdefault((kind, callee), []).append(operator)
    return table


def _callees(operator: Any, kind: str) -> list[str]:
    """The dotted names (``torch.sin``, ``sin_``) of an operator's forms of one kind."""
    texts = [form.text for form in operator.forms if form.kind == kind]
    return [text for text in texts if re.fullmatch(r"[A-Za-z][\w.]*", text)]


def _other_symbols(statement: Statement, value: ast.BinOp | ast.Compare, names: dict[str, Guess]) -> list[Statement]:
    left, right = (value.left, value.right) if isinstance(value, ast.BinOp) else (value.left, value.comparators[0])
    if not (guess(left, names).tensor or guess(right, names).tensor) or isinstance(right, (ast.BinOp, ast.Compare)):
        return []
    symbol = _SYMBOLS.get(type(value.op if isinstance(value, ast.BinOp) else value.ops[0]))
    group = next((g for g in tables.SYMBOLS if symbol in g), ())
    texts = [f"{statement.source(left)} {other} {statement.source(right)}" for other in group if other != symbol]
    return [statement.edit(value, text) for text in texts]


def change_number(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One number among a call's arguments goes to a boundary of what it may be."""
    places = [
        (index, statement, node, keyword)
        for index, statement in enumerate(view.body)
        for node, keyword in _numbers(statement)
    ]
    if not places:
        return None
    index, statement, node, keyword = ctx.rng.choice(places)
    call = statement.node.value  # type: ignore[attr-defined]
    names, name = guess_names(view, index), op_name(call)
    operands = (
        tensor_arguments(call) if isinstance(call, ast.Call) else [call.left] if isinstance(call, ast.BinOp) else []
    )
    shape = next((g.shape for g in (guess(operand, names) for operand in operands) if g.shape), None)
    old = ast.literal_eval(node)
    size = ctx.rng.choice(shape) if shape else 4
    if keyword in _DIM_KEYWORDS or (not keyword and name in _DIM_FUNCTIONS):
        size = len(shape) if shape else 2
    new = (
        _float_boundary(ctx, old, converts(view)) if isinstance(old, float) else _integer_boundary(ctx, old, size, name)
    )
    return view.with_statement(index, statement.edit(node, new)) if new != statement.source(node) else None


#: Their positional integers number dimensions: the boundary is the rank.
_DIM_FUNCTIONS = words(
    "sum mean prod amax amin var std argmax argmin any all max min median softmax log_softmax cumsum cumprod "
    "cummax cummin logsumexp transpose permute squeeze unsqueeze flatten unbind select movedim swapaxes flip sort "
    "argsort gather index_select scatter scatter_add index_add stack cat"
)
_DIM_KEYWORDS = words("dim dims dim0 dim1 start_dim end_dim axis")


def _numbers(statement: Statement) -> list[tuple[ast.expr, str]]:
    """(literal, keyword or "") among a call's arguments, an operator's operands, or the bounds of an index."""
    value = statement.node.value if statement.simple else None  # type: ignore[attr-defined]
    parts: list[tuple[ast.expr, str]] = []
    if isinstance(value, ast.Call):
        parts = [*((a, "") for a in value.args), *((k.value, k.arg or "") for k in value.keywords)]
    elif isinstance(value, ast.BinOp) and not isinstance(
        value.op, (ast.LShift, ast.RShift)
    ):  # past the width: undefined
        parts = [(value.left, ""), (value.right, "")]
    elif isinstance(value, ast.Compare):
        parts = [(part, "") for part in value.comparators]
    elif isinstance(value, ast.Subscript):
        parts = [(value.slice, "")]
    found: list[tuple[ast.expr, str]] = []
    for part, keyword in parts:
        for element in part.elts if isinstance(part, (ast.Tuple, ast.List)) else [part]:
            bounds = [element.lower, element.upper, element.step] if isinstance(element, ast.Slice) else [element]
            for node in bounds:
                operand = node.operand if isinstance(node, ast.UnaryOp) else node
                if node is not None and isinstance(operand, ast.Constant) and type(operand.value) in (int, float):
                    found.append((node, keyword))
    return found


def _integer_boundary(ctx: MutationContext, old: int, size: int, name: str) -> str:
    options = [0, 1, -1, size - 1, size, -size, size + 1, old + 1, old - 1, 2]
    if name not in tables.ALLOCATING and ctx.chance(0.06):
        options = [2**31 - 1, 2**63 - 1, -(2**63)]
    return str(ctx.rng.choice([option for option in options if option != old]))


def _float_boundary(ctx: MutationContext, old: float, finite: bool) -> str:
    options = ["0.0", "1.0", "-1.0", repr(-old), "1e-7"]
    options += [] if finite else ["1e30", 'float("inf")', 'float("-inf")', 'float("nan")']
    return ctx.rng.choice([option for option in options if option not in (repr(old), "-0.0")])


def toggle_keyword(view: ProgramView, ctx: MutationContext) -> ProgramView | None:
    """One keyword argument is added, dropped, or set to another sensible value."""
    options: list[tuple[int, Statement]] = []
    for index, statement, call in calls(view):
        present = {k.arg: k for k in call.keywords}
        known = tables.KEYWORDS.get(op_name(call), ())
        for keyword in call.keywords:
            needed = keyword.arg == "dim" and op_name(call) not in _DIM_OPTIONAL
            if keyword.arg in tables.OPTIONAL_KEYWORDS and not needed:
                options.append((index, _with_keywords(statement, call, drop=keyword.arg)))
        for name, value in known:
            if name in present:
                options.append((index, statement.edit(present[name].value, value)))
            elif not (name in ("dim", "dims", "dtype", "padding", "stride", "dilation") and _given(call)):
                options.append((index, _with_keywords(statement, call, add=f"{name}={value}")))
    options = [(index, new) for index, new in options if new != view.body[index]]
    if not options:
        return None
    index, new = ctx.rng.choice(options)
    return view.with_statement(index, new)


#: Without ``dim`` they reduce everything; others need it, or give another kind of result.
_DIM_OPTIONAL = words(
    "sum mean prod nansum amax amin var std any all argmax argmin cat stack sort argsort flip squeeze"
)


def _given(call: ast.Call) -> bool:
    """Are there more positional arguments than tensors, so that the keyword may already be given by position?"""
    return any(
        isinstance(a.operand if isinstance(a, ast.UnaryOp) else a, (ast.Constant, ast.Tuple, ast.List))
        for a in call.args
    )


def _with_keywords(statement: Statement, call: ast.Call, add: str = "", drop: str | None = None) -> Statement:
    parts = [statement.source(argument) for argument in call.args]
    parts += [
        f"{k.arg}={statement.source(k.value)}" if k.arg else f"**{statement.source(k.value)}"
        for k in call.keywords
        if k.arg is None or not (k.arg == drop or (drop == "dim" and k.arg == "keepdim"))
    ]
    if add == "keepdim=True" and not _has_dim(call) and op_name(call) not in ("sum", "amax", "amin", "var", "std"):
        parts.append("dim=-1")  # keepdim alone is not among the overloads
    elif add == "keepdim=True" and not _has_dim(call):
        parts.append("dim=0")
    parts += [add] if add else []
    return statement.edit(call, f"{statement.source(call.func)}({', '.join(parts)})")


def _has_dim(call: ast.Call) -> bool:
    return any(k.arg == "dim" for k in call.keywords) or _given(call)


MUTATIONS = (
    FunctionMutation(
        "replace_operator",
        "an operator is replaced by a functional neighbour with the same arguments",
        ("op_family=pointwise",),
        replace_operator,
    ),
    FunctionMutation(
        "boundary_argument",
        "a numeric argument goes to a boundary: zero, one, minus one, the size and its neighbours, extremes",
        ("boundary=negative_dim", "boundary=zero_argument", "boundary=int64_extreme", "boundary=float_extreme"),
        change_number,
    ),
    FunctionMutation(
        "toggle_keyword",
        "a keyword argument (dim, keepdim, rounding mode …) is added, dropped or changed",
        ("boundary=keepdim", "boundary=alpha", "boundary=rounding_mode", "boundary=ceil_mode"),
        toggle_keyword,
    ),
)
