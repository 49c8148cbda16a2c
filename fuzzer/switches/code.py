"""Without a feature of ``fn``: its operators, how they feed one another, control flow, constructs, mutation."""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterator, Mapping

from fuzzer.engines.block import Returns
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView
from fuzzer.features.detect import default_space
from fuzzer.reduce import options
from fuzzer.reduce.tidy import single, tidied
from fuzzer.switches import inputs
from fuzzer.switches.apart import apart, broken
from fuzzer.switches.reading import edges, of_families, of_group, opaque, with_word
from fuzzer.switches.settings import unnested

#: In-place methods whose plain form is another function or none.
_NO_PLAIN_FORM = frozenset(
    {"copy_", "fill_", "zero_", "normal_", "uniform_", "random_", "requires_grad_", "set_", "resize_", "data_"}
)
#: Control-flow words → the statements.
_CONTROL: Mapping[str, type[ast.stmt]] = {
    "if_data": ast.If, "if_static": ast.If, "for_loop": ast.For, "while": ast.While, "try": ast.Try, "with": ast.With,
}  # fmt: skip
_LOOPS = ("while_loop", "map", "scan")


def op_family(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """The family's operators apart, so that eager computes what they compute."""
    yield from apart(view, of_families(view, frozenset(_arguments(f"op_family={value}"))))


def _arguments(feature: str) -> tuple[str, ...]:
    found = default_space().features.get(feature)
    return found.arguments if found is not None else ()


def adjacency(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """A graph break on the edge; where no two statements make it, the first end apart."""
    left, _, right = value.partition(">")
    cut = list(edges(view, left, right))
    yield from broken(view, cut)
    if not cut:
        yield from apart(view, of_group(view, left))


def topology(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value == "multi_result":
        for item in view.returns.items if view.returns.kind in ("tuple", "list", "dict") else ():
            yield tidied(single(view, item))
    elif value == "in_place":
        yield from mutation(view, value)
    elif value == "alias":
        items = [f"{item}.clone()" if item.isidentifier() else item for item in view.returns.items]
        yield dataclasses.replace(view, returns=dataclasses.replace(view.returns, items=tuple(items)))
    elif value == "multi_output":
        yield from apart(view, [i for i, item in enumerate(view.body) if len(item.targets) > 1])
    elif value == "view_mutation":
        yield from broken(view, of_group(view, "view"))
    elif value == "input_reuse":
        yield from _with_copies(view)
    else:
        yield from broken(view, range(len(view.body)))


def _with_copies(view: ProgramView) -> Iterator[ProgramView]:
    """Every statement but the first that reads an input reads a copy of it."""
    names, seen, body = view.fresh_names(), set[str](), list[Statement]()
    copies: list[Statement] = []
    for statement in view.body:
        again = [name for name in view.params if name in statement.reads and name in seen]
        seen |= {name for name in view.params if name in statement.reads}
        mapping = {name: next(names) for name in again}
        copies += [Statement.of(f"{copy} = {name}.clone()") for name, copy in mapping.items()]
        body.append(statement.renamed(mapping) if mapping and not statement.writes & set(again) else statement)
    changed = dataclasses.replace(view, body=(*copies, *body))
    yield from apart(changed, range(len(copies)))


def cast(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """A graph break behind the cast for a round trip, else the casts apart."""
    casts = of_families(view, frozenset({"cast"}))
    if value == "round_trip":
        yield from broken(view, casts)
    yield from apart(view, casts)


def dtype_mix(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Operands in their common dtype before the compiler sees them."""
    yield from _operands(view, "{0}.to(torch.result_type({0}, {1}))")


def broadcast(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Operands expanded, and copied, before the compiler sees them."""
    yield from _operands(view, "{0}.expand(torch.broadcast_shapes({0}.shape, {1}.shape)).contiguous()")


def _operands(view: ProgramView, expression: str) -> Iterator[ProgramView]:
    """Statements with two tensors by name: both converted apart, in names of their own."""
    names, body, places = view.fresh_names(), list[Statement](), list[int]()
    for statement in view.body:
        pair = _two_operands(statement, view)
        if pair is None:
            body.append(statement)
            continue
        one, other = pair
        mapping = {one: next(names), other: next(names)}
        places.append(len(body))
        left, right = expression.format(one, other), expression.format(other, one)
        body += [Statement.of(f"{mapping[one]}, {mapping[other]} = {left}, {right}"), _reading(statement, mapping)]
    yield from apart(dataclasses.replace(view, body=tuple(body)), places)


def _two_operands(statement: Statement, view: ProgramView) -> tuple[str, str] | None:
    value = statement.value
    if isinstance(value, ast.BinOp):
        arguments: list[ast.expr] = [value.left, value.right]
    elif isinstance(value, ast.Call):
        library = isinstance(value.func, ast.Attribute) and ast.unparse(value.func.value) in ("torch", "F")
        receiver = [value.func.value] if isinstance(value.func, ast.Attribute) and not library else []
        arguments = [*receiver, *value.args]
    elif isinstance(value, ast.Compare):
        arguments = [value.left, *value.comparators]
    else:
        return None
    named = [node.id for node in arguments if isinstance(node, ast.Name) and node.id in view.locals()]
    return (named[0], named[1]) if len(named) >= 2 and named[0] != named[1] and not statement.writes else None


def _reading(statement: Statement, mapping: dict[str, str]) -> Statement:
    """The statement with the names that it reads replaced; those that it binds stay."""
    renamed = statement.renamed(mapping)
    clash = [name for name in statement.targets if name in mapping]
    return renamed if not clash else renamed.renamed({mapping[name]: name for name in clash})


def control(view: ProgramView, value: str) -> Iterator[ProgramView]:
    if value in _CONTROL:
        yield from unnested(view, _CONTROL[value], "")
    words = _LOOPS if value == "loop_operator" else (value,)
    yield from apart(view, [index for word in words for index in with_word(view, "control", word)] or opaque(view))


def python(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """The construct undone where it has a plain form; else what carries it, or may hide it, apart."""
    if value == "graph_break":
        body = tuple(
            item for item in view.body if "graph_break" not in item.text and not item.text.startswith("print(")
        )
        yield dataclasses.replace(view, body=body)
    elif value == "dict_result" and view.returns.kind == "dict":
        yield dataclasses.replace(view, returns=Returns("tuple", view.returns.items))
    elif value == "number_input":
        yield _with_constants(view)
    elif value == "detach":
        yield _rewritten(view, r"\.detach\(\)", "")
    elif value == "module":
        for changed in options.smaller_modules(view):
            yield changed
            break
    yield from apart(view, with_word(view, "python", value) or opaque(view))


def _with_constants(view: ProgramView) -> ProgramView:
    """Numbers among the inputs written into ``fn``, as constants of the program."""
    made = {item.targets[0]: item.value for item in view.build if len(item.targets) == 1 and item.value is not None}
    numbers = [
        Statement.of(f"{param} = {ast.unparse(made[name])}")
        for param, name in zip(view.params, view.inputs)
        if name in made and isinstance(made[name], (ast.Constant, ast.UnaryOp))
    ]
    return dataclasses.replace(view, body=(*numbers, *view.body))


def _rewritten(view: ProgramView, pattern: str, plain: str) -> ProgramView:
    texts = [re.sub(pattern, plain, item.text) for item in view.body]
    return dataclasses.replace(view, body=tuple(map(Statement.of, texts)))


def mutation(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """Out-of-place forms: ``x.add_(y)`` as ``x = x.add(y)``, ``x += y`` as ``x = x + y``; else the write apart."""
    body = tuple(Statement.of(_out_of_place(statement)) for statement in view.body)
    if body != view.body:
        yield dataclasses.replace(view, body=body)
    elif value == "out_argument":
        yield _rewritten(view, r",\s*out=\w+(?=\))", "")
    yield from apart(view, of_group(view, "inplace") or [i for i, item in enumerate(view.body) if item.writes])


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


_INDEX_REDUCTION, _REDUCTION = frozenset({"index_reduction", "sort"}), frozenset({"reduction", "index_reduction"})


def mechanism(view: ProgramView, value: str) -> Iterator[ProgramView]:
    """One part of the combination undone, the others left."""
    switch = _MECHANISMS.get(value)
    if switch is not None:
        yield from switch(view)


_MECHANISMS: Mapping[str, Callable[[ProgramView], Iterator[ProgramView]]] = {
    "strided_index_reduction": lambda view: inputs.layout(view, "transposed"),
    "item_fill": lambda view: apart(view, with_word(view, "text_mechanism", "item_fill")),
    "clone_zero_view": lambda view: apart(view, [i for i, item in enumerate(view.body) if ".zero_(" in item.text]),
    "view_mutation_break": lambda view: python(view, "graph_break"),
    "pow_chain": lambda view: broken(view, [i for i, item in enumerate(view.body) if "pow" in item.text]),
    "scalar_reduction": lambda view: apart(view, of_families(view, _REDUCTION)),
    "empty_reduction": lambda view: inputs.shape(view, "empty"),
    "permuted_conv_weight": lambda view: inputs.layout(view, "transposed"),
    "cast_before_equality": lambda view: cast(view, "round_trip"),
    "expanded_mutation": lambda view: inputs.layout(view, "expanded"),
}
