"""Without a parameter at the edge of its range: the literal away from the edge, then the whole statement apart."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Callable, Iterator, Mapping

from fuzzer.engines.block import Block
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView
from fuzzer.switches.apart import apart
from fuzzer.switches.reading import with_word

#: Keyword → its text away from the edge; None: left out.
_KEYWORDS: Mapping[str, Mapping[str, str | None]] = {
    "ceil_mode": {"ceil_mode": "False"},
    "keepdim": {"keepdim": "False"},
    "stride": {"stride": "1"},
    "dilation": {"dilation": "1"},
    "alpha": {"alpha": None, "beta": None},
    "rounding_mode": {"rounding_mode": None},
    "asymmetric_padding": {"padding": "1"},
}

#: A node's new text; None leaves it alone.
Edit = Callable[[ast.expr], "str | None"]


def boundary(view: ProgramView, value: str) -> Iterator[ProgramView]:
    indices = with_word(view, "boundary", value)
    if value in _KEYWORDS:
        yield _each(view, indices, lambda statement: _keywords(statement, _KEYWORDS[value]))
    elif value == "zero_argument":
        yield _each(view, indices, _without_zeros)
    elif value in _EDITS:
        yield _each(view, indices, lambda statement: edited(statement, _EDITS[value]))
    elif value == "negative_dim":
        yield _each(view, indices, _counted_from_the_front)
    yield from apart(view, indices)


def _each(view: ProgramView, indices: list[int], change: Callable[[Statement], Statement]) -> ProgramView:
    body = tuple(change(item) if index in indices else item for index, item in enumerate(view.body))
    changed = dataclasses.replace(view, body=body)
    if indices:
        return changed
    # where fn has none, the inputs are made with it
    return changed.with_blocks(lambda block: Block(tuple(map(change, block.body)), block.returns))


def edited(statement: Statement, edit: Edit) -> Statement:
    """Every expression for which there is a new text, the last first, so that positions stay true."""
    found = []
    for node in ast.walk(statement.node):
        if isinstance(node, ast.expr) and (text := edit(node)) is not None:
            found.append((node.lineno, node.col_offset, node, text))
    done: list[tuple[int, int]] = []
    for line, column, node, text in sorted(found, key=lambda item: item[:2], reverse=True):
        inside = any((line, column) <= place <= (node.end_lineno, node.end_col_offset) for place in done)
        if not inside:
            statement = statement.edit(node, text)
            done.append((line, column))
    return statement


def _keywords(statement: Statement, changes: Mapping[str, str | None]) -> Statement:
    for name, text in changes.items():
        call = _call_with(statement, name)
        if call is None:
            continue
        keyword = next(item for item in call.keywords if item.arg == name)
        if text is not None:
            statement = statement.edit(keyword.value, text)
        else:
            statement = _without_keyword(statement, call, keyword)
    return statement


def _call_with(statement: Statement, keyword: str) -> ast.Call | None:
    calls = (node for node in ast.walk(statement.node) if isinstance(node, ast.Call))
    return next((call for call in calls if any(item.arg == keyword for item in call.keywords)), None)


def _without_keyword(statement: Statement, call: ast.Call, gone: ast.keyword) -> Statement:
    parts = [statement.source(argument) for argument in call.args]
    parts += [f"{item.arg}={statement.source(item.value)}" for item in call.keywords if item is not gone and item.arg]
    return statement.edit(call, f"{statement.source(call.func)}({', '.join(parts)})")


def _without_zeros(statement: Statement) -> Statement:
    for _ in range(4):
        found = next(
            (
                (call, keyword)
                for call in ast.walk(statement.node)
                if isinstance(call, ast.Call)
                for keyword in call.keywords
                if keyword.arg not in ("dim", "axis", "dim0", "dim1", "start_dim", "seed", None)
                and isinstance(keyword.value, ast.Constant)
                and type(keyword.value.value) in (int, float)
                and keyword.value.value == 0
            ),
            None,
        )
        if found is None:
            break
        statement = _without_keyword(statement, *found)
    return statement


def _counted_from_the_front(statement: Statement) -> Statement:
    """``x.sum(-1)`` as ``x.sum(x.dim() - 1)``, which is plain arithmetic before the compiler sees it."""
    for _ in range(4):
        found = next(_negative_dims(statement), None)
        if found is None:
            break
        node, tensor, number = found
        statement = statement.edit(node, f"{tensor}.dim() - {number}")
    return statement


def _negative_dims(statement: Statement) -> Iterator[tuple[ast.expr, str, int]]:
    for call in ast.walk(statement.node):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
            continue
        library = ast.unparse(call.func.value) in ("torch", "F", "torch.nn.functional", "torch.linalg", "torch.special")
        rest = call.args[1:] if library else call.args
        tensor = call.args[0] if library and call.args else call.func.value
        if not isinstance(tensor, ast.Name):
            continue
        for argument in (*rest, *(keyword.value for keyword in call.keywords)):
            for node in argument.elts if isinstance(argument, (ast.Tuple, ast.List)) else [argument]:
                number = _negated(node)
                if number:
                    yield node, tensor.id, number


def _negated(node: ast.expr) -> int:
    """2 for ``-2``; 0 for anything else."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub) and isinstance(node.operand, ast.Constant):
        value = node.operand.value
        return value if type(value) is int else 0
    return 0


def _smaller_integer(node: ast.expr) -> str | None:
    huge = isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 2**31 - 1
    return "3" if huge else None


def _smaller_float(node: ast.expr) -> str | None:
    if isinstance(node, ast.Constant) and type(node.value) is float and abs(node.value) >= 2e19:
        return "2.0"
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "float" and node.args:
        return "2.0" if isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str) else None
    return None


def _sized(node: ast.expr) -> str | None:
    return "2" if isinstance(node, ast.Constant) and type(node.value) is int and node.value == 0 else None


def _unit_step(node: ast.expr) -> str | None:
    if isinstance(node, ast.Slice) and node.step is not None:
        return ":".join([ast.unparse(bound) if bound else "" for bound in (node.lower, node.upper)])
    return None


def _whole_slice(node: ast.expr) -> str | None:
    return "1:" if isinstance(node, ast.Slice) else None


def _first(node: ast.expr) -> str | None:
    index = node.slice if isinstance(node, ast.Subscript) else None
    return f"{ast.unparse(node.value)}[0]" if isinstance(node, ast.Subscript) and index and _negated(index) else None


def _positive(node: ast.expr) -> str | None:
    number = _negated(node)
    return str(number) if number else None


def _near_dim(node: ast.expr) -> str | None:
    constant = isinstance(node, ast.Constant) and type(node.value) is int and node.value >= 7
    return "0" if constant or _negated(node) >= 7 else None


def _one_dim(node: ast.expr) -> str | None:
    return ast.unparse(node.elts[0]) if isinstance(node, ast.Tuple) and len(node.elts) > 1 else None


_EDITS: Mapping[str, Edit] = {
    "int64_extreme": _smaller_integer,
    "int32_extreme": _smaller_integer,
    "float_extreme": _smaller_float,
    "zero_size": _sized,
    "slice_step": _unit_step,
    "slice_bound": _whole_slice,
    "negative_index": _first,
    "negative_padding": _positive,
    "tuple_dim": _one_dim,
    "far_dim": _near_dim,
    "negative_list": _positive,
    "zero_list": _sized,
}
