"""Guesses at what a name holds, read from the text: is it a tensor, of what dtype and shape?

A few rules over the commonest operators, no shape inference: an unknown is ``None`` and the mutations that need
the fact go elsewhere. A wrong guess costs one invalid program, never more.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace

from fuzzer.engines.mutate import tables
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView

Shape = tuple[int, ...]

_CASTS = {
    **{"half": "float16", "float": "float32", "double": "float64", "bfloat16": "bfloat16", "int": "int32"},
    **{
        "long": "int64",
        "short": "int16",
        "char": "int8",
        "byte": "uint8",
        "bool": "bool",
        "cfloat": "complex64",
    },
}
#: Factories whose leading arguments are the shape.
SHAPE_FIRST = frozenset({"rand", "randn", "zeros", "ones", "empty"})
FACTORIES = SHAPE_FIRST | {
    "full",
    "randint",
    "arange",
    "linspace",
    "tensor",
    "eye",
    "randperm",
    "empty_strided",
}


@dataclass(frozen=True)
class Guess:
    """``tensor`` False: a number, a list, or unknown. ``dtype`` without the ``torch.`` prefix."""

    tensor: bool
    dtype: str | None = None
    shape: Shape | None = None

    @property
    def rank(self) -> int | None:
        return None if self.shape is None else len(self.shape)

    @property
    def floating(self) -> bool:
        return self.dtype in tables.FLOATS

    @property
    def real(self) -> bool:
        """A plain float, integer or bool: ordered, and summed everywhere."""
        return self.dtype in (*tables.FLOATS, *tables.INTEGERS, "bool")


OTHER = Guess(False)
UNKNOWN_TENSOR = Guess(True)


def guess_inputs(view: ProgramView) -> dict[str, Guess]:
    """Per name of ``build_inputs``."""
    return _run(view.build, {})


def guess_names(view: ProgramView, upto: int | None = None) -> dict[str, Guess]:
    """Per local of ``fn``, after ``body[:upto]`` (all of it by default)."""
    inputs = guess_inputs(view)
    names: dict[str, Guess] = {}
    if len(view.inputs) == len(view.params):
        names = {param: inputs.get(name, OTHER) for param, name in zip(view.params, view.inputs)}
    return _run(view.body[:upto], names)


def _run(body: Sequence[Statement], names: dict[str, Guess]) -> dict[str, Guess]:
    names = dict(names)
    for statement in body:
        node = statement.node
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            names[node.targets[0].id] = guess(node.value, names)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple) and _is_call(node.value):
            for target in statement.targets:
                names[target] = UNKNOWN_TENSOR if op_name(node.value) in tables.MULTIPLE else OTHER
        elif not isinstance(node, (ast.AugAssign, ast.Expr)):
            names.update(dict.fromkeys(statement.targets, OTHER))
    return names


def op_name(node: ast.expr) -> str:
    """``torch.relu_(x)``, ``x.relu()``, ``F.relu(x)`` → ``relu``; "" for anything else."""
    if not isinstance(node, ast.Call):
        return ""
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    return name if name.startswith("_") else name.rstrip("_")


def is_method(node: ast.Call) -> bool:
    """Is the call on a value rather than on a module of functions?"""
    func: ast.expr = node.func
    while isinstance(func, ast.Attribute):
        func = func.value
    return not (isinstance(func, ast.Name) and func.id in ("torch", "F", "nn", "math"))


def tensor_arguments(node: ast.Call) -> list[ast.expr]:
    """The values that the call works on: the object of a method, then the positional arguments."""
    if is_method(node) and isinstance(node.func, ast.Attribute):
        return [node.func.value, *node.args]
    return list(node.args)


def guess(node: ast.expr, names: dict[str, Guess]) -> Guess:
    """What an expression yields."""
    if isinstance(node, ast.Name):
        return names.get(node.id, OTHER)
    if isinstance(node, (ast.BinOp, ast.Compare)):
        operands = [node.left, node.right] if isinstance(node, ast.BinOp) else [node.left, *node.comparators]
        parts = [guess(operand, names) for operand in operands]
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            return _matmul(parts)
        both = _broadcast(parts)
        if isinstance(node, ast.Compare) and both.tensor:
            return replace(both, dtype="bool")
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div) and both.dtype in tables.INTEGERS:
            return replace(both, dtype="float32")
        return both
    if isinstance(node, ast.UnaryOp):
        return guess(node.operand, names)
    if isinstance(node, ast.Subscript):
        base = guess(node.value, names)
        return replace(base, shape=None) if base.tensor else OTHER
    if isinstance(node, ast.Attribute):
        base = guess(node.value, names)
        if base.tensor and node.attr in ("T", "mT", "H", "mH", "real", "imag", "data"):
            return replace(base, shape=base.shape[::-1] if node.attr == "T" and base.shape is not None else None)
        return OTHER
    return _call(node, names) if isinstance(node, ast.Call) else OTHER


def _call(node: ast.Call, names: dict[str, Guess]) -> Guess:
    name = op_name(node)
    if not name or name in tables.MULTIPLE or name in tables.SCALARS:
        return OTHER
    if not is_method(node) and name in FACTORIES:
        return _factory(node, name)
    arguments = [guess(argument, names) for argument in tensor_arguments(node)]
    if is_method(node) and not (arguments and arguments[0].tensor):
        return OTHER
    first = arguments[0] if arguments else UNKNOWN_TENSOR
    if not first.tensor:
        first = next((a for a in arguments if a.tensor), UNKNOWN_TENSOR)
    numbers = [_integer(argument) for argument in (node.args if is_method(node) else node.args[1:])]
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    dtype = _dtype(keywords.get("dtype")) or first.dtype
    if name in tables.BINARY:
        both = _broadcast(arguments)
        dtype = "bool" if name in tables.PREDICATES else both.dtype
        if name in tables.FLOATING and dtype in tables.INTEGERS:
            dtype = "float32"
        return replace(both, dtype=dtype) if both.tensor else UNKNOWN_TENSOR
    if name in ("matmul", "mm"):
        return _matmul(arguments[:2])
    if name in tables.REDUCTIONS:
        if not numbers and not keywords and name in ("max", "min", "median"):
            return replace(first, shape=())
        if name in ("max", "min", "median") and not any(a.tensor for a in arguments[1:]):
            return OTHER  # a pair of values and indices
        kind = "bool" if name in tables.PREDICATES else "int64" if name in tables.INDEX_RESULTS else dtype
        return Guess(True, kind, () if not numbers and "dim" not in keywords else None)
    if name in tables.INDEX_RESULTS:
        return Guess(True, "int64")
    if name in tables.UNARY:
        kind = "bool" if name in tables.PREDICATES else dtype
        if name in tables.FLOATING and kind in (*tables.INTEGERS, "bool"):
            kind = "float32"
        return replace(first, dtype=kind)
    if name in _CASTS and is_method(node):
        return replace(first, dtype=_CASTS[name])
    if name == "to":
        return replace(first, dtype=next((d for d in map(_dtype, node.args) if d), dtype))
    return Guess(True, dtype, _view_shape(name, first.shape, numbers))


def _view_shape(name: str, shape: Shape | None, numbers: list[int | None]) -> Shape | None:
    if shape is None or None in numbers:
        return None
    integers = [number for number in numbers if number is not None]
    rank = len(shape)
    if name == "t":
        return shape[::-1]
    if name in ("transpose", "swapaxes", "swapdims") and len(integers) == 2 and rank:
        if any(not -rank <= number < rank for number in integers):
            return None
        order = list(range(rank))
        first, second = integers[0] % rank, integers[1] % rank
        order[first], order[second] = order[second], order[first]
        return tuple(shape[axis] for axis in order)
    if name == "permute" and sorted(n % rank for n in integers if rank) == list(range(rank)):
        return tuple(shape[n] for n in integers)
    if name == "flatten" and not integers:
        size = 1
        for extent in shape:
            size *= extent
        return (size,)
    if name == "unsqueeze" and len(integers) == 1 and -rank - 1 <= integers[0] <= rank:
        place = integers[0] % (rank + 1)
        return (*shape[:place], 1, *shape[place:])
    if name in ("view", "reshape", "expand") and integers and min(integers) >= 0:
        return tuple(integers)
    return None


def _factory(node: ast.Call, name: str) -> Guess:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    dtype = _dtype(keywords.get("dtype"))
    shape = factory_shape(node)
    default = "float32"
    if name in ("randint", "randperm") or (name == "arange" and not _has_float(node)):
        default = "int64"
    elif name in ("tensor", "full"):
        default = _literal_dtype(node.args[-1]) if node.args else "float32"
    return Guess(True, dtype or default, shape)


def factory_shape(node: ast.Call) -> Shape | None:
    """The literal shape that a factory call makes, where it is written out."""
    name = op_name(node)
    if name == "tensor":
        try:
            value = ast.literal_eval(node.args[0]) if node.args else None
        except ValueError:
            return None
        extents = []
        while isinstance(value, (list, tuple)):
            extents.append(len(value))
            value = value[0] if value else None
        return tuple(extents)
    if name == "linspace":
        sizes = [_integer(node.args[2])] if len(node.args) > 2 else [None]
    elif name in ("arange", "randperm", "eye") and len(node.args) == 1:
        sizes = [_integer(node.args[0])] * (2 if name == "eye" else 1)
    else:
        sizes = [_integer(size) for size in shape_nodes(node) or [ast.Name("?")]]
        if not shape_nodes(node) and _empty_shape(node):
            return ()
    if any(size is None or size < 0 for size in sizes):
        return None
    return tuple(size for size in sizes if size is not None)


def shape_nodes(node: ast.Call) -> list[ast.expr]:
    """The nodes that spell a factory's sizes: ``randn(3, 4)``, ``zeros((3, 4))``, ``randint(0, 9, (3,))``."""
    name = op_name(node)
    if name in SHAPE_FIRST:
        if len(node.args) == 1 and isinstance(node.args[0], (ast.Tuple, ast.List)):
            return list(node.args[0].elts)
        return list(node.args)
    tuples = [a for a in node.args if isinstance(a, (ast.Tuple, ast.List))]
    if name in ("full", "randint") and tuples:
        return list(tuples[0].elts)
    return []


def _empty_shape(node: ast.Call) -> bool:
    return any(isinstance(a, (ast.Tuple, ast.List)) and not a.elts for a in node.args)


def _broadcast(parts: Sequence[Guess]) -> Guess:
    tensors = [part for part in parts if part.tensor]
    if not tensors:
        return OTHER
    dtypes = [part.dtype for part in tensors if part.rank != 0] or [part.dtype for part in tensors]
    order = ["bool", *reversed(tables.INTEGERS), "float16", "bfloat16", "float32", "float64"]
    dtype = max(dtypes, key=order.index) if all(d in order for d in dtypes) else None  # type: ignore[arg-type]
    shapes = [part.shape for part in tensors]
    if any(shape is None for shape in shapes):
        return Guess(True, dtype, None)
    rank = max(len(shape) for shape in shapes if shape is not None)
    result: list[int] = []
    for axis in range(rank):
        extents = {s[len(s) - rank + axis] for s in shapes if s is not None and len(s) - rank + axis >= 0} - {1}
        if len(extents) > 1:
            return Guess(True, dtype, None)
        result.append(extents.pop() if extents else 1)
    return Guess(True, dtype, tuple(result))


def _matmul(parts: Sequence[Guess]) -> Guess:
    if len(parts) == 2 and parts[0].shape is not None and parts[1].shape is not None:
        left, right = parts[0].shape, parts[1].shape
        if len(left) == len(right) == 2:
            return Guess(True, parts[0].dtype, (left[0], right[1]))
    return Guess(True, parts[0].dtype if parts else None)


def _dtype(node: ast.expr | None) -> str | None:
    known = (*tables.FLOATS, *tables.INTEGERS, *tables.RARE_DTYPES, "bool")
    return node.attr if isinstance(node, ast.Attribute) and node.attr in known else None


def _integer(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError):
        return None
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _has_float(node: ast.Call) -> bool:
    return any(isinstance(n, ast.Constant) and isinstance(n.value, float) for n in ast.walk(node))


def _literal_dtype(node: ast.expr) -> str:
    values = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant)]
    if any(isinstance(n, ast.Call) for n in ast.walk(node)) or any(isinstance(v, float) for v in values):
        return "float32"
    if any(isinstance(v, complex) for v in values):
        return "complex64"
    return "bool" if values and all(isinstance(v, bool) for v in values) else "int64" if values else "float32"


def _is_call(node: ast.expr) -> bool:
    return isinstance(node, ast.Call)
