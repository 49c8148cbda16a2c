"""How one input is made: ``torch.randn(4, 3)[1:].t()`` as a factory, a shape, a dtype, and steps behind it."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

Shape = tuple[int, ...]

#: Factories whose arguments are the sizes, alone or as one tuple.
_SIZES = frozenset({"randn", "rand", "ones", "zeros", "empty"})
_CASTS = {
    "half": "float16", "bfloat16": "bfloat16", "float": "float32", "double": "float64", "bool": "bool",
    "int": "int32", "long": "int64", "short": "int16", "char": "int8", "byte": "uint8",
}  # fmt: skip
_FLOATS = frozenset({"float16", "bfloat16", "float32", "float64"})
#: Methods that change neither shape nor dtype, and whether they say something about layout.
_KEEPS = {"contiguous": True, "clone": True, "detach": False, "requires_grad_": False}
_VALUES = frozenset({"abs", "sort", "neg", "exp", "sqrt", "abs_", "neg_", "normal_", "uniform_", "fill_", "zero_"})


@dataclass(frozen=True)
class Recipe:
    """An input's expression, read.

    ``shape`` and ``dtype`` are those of the result. ``layout``: are there steps that leave it non-contiguous, offset or
    expanded? ``values``: are there steps or arguments that make its values other than those of the factory?
    """

    factory: str
    shape: Shape
    dtype: str
    layout: bool = False
    values: bool = False
    gradient: bool = False

    @property
    def floating(self) -> bool:
        return self.dtype in _FLOATS

    @property
    def plain(self) -> bool:
        """Nothing but a factory."""
        return not (self.layout or self.values)

    def text(self) -> str:
        """An expression with these facts: contiguous, filled by ``factory``; "" where the factory cannot."""
        integral = not self.floating
        if self.dtype.startswith("complex") and self.factory == "arange":
            return ""
        if integral and self.factory in ("randn", "rand") and not self.dtype.startswith("complex"):
            return ""
        wanted = "" if self.dtype == "float32" else f", dtype=torch.{self.dtype}"
        if self.factory == "arange":
            if self.dtype == "bool":
                return ""
            count = math.prod(self.shape)
            made = f"torch.arange({count}{wanted})" if wanted else f"torch.arange({float(count)})"
            made += "" if len(self.shape) == 1 else f".reshape({_sizes(self.shape)})"
        elif self.factory in _SIZES:
            made = f"torch.{self.factory}({_sizes(self.shape)}{wanted})"
        elif self.factory == "randint":
            made = f"torch.randint(0, 2, {self.shape}{wanted if self.dtype != 'int64' else ''})"
        else:
            return ""
        return made + (".requires_grad_()" if self.gradient and self.dtype in _FLOATS else "")

    def filled(self, factory: str) -> Recipe:
        return replace(self, factory=factory, layout=False, values=False)


def _sizes(shape: Shape) -> str:
    return ", ".join(map(str, shape)) or "()"


def read_recipe(node: ast.expr) -> Recipe | None:
    """The recipe that an expression spells; None where it is anything else (a module, a list, unknown steps)."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        if _is_torch(node.func.value):
            return _factory(node, node.func.attr)
        inner = read_recipe(node.func.value)
        return _step(inner, node.func.attr, node) if inner else None
    if isinstance(node, ast.Attribute) and node.attr in ("T", "mT"):
        inner = read_recipe(node.value)
        if inner is None or len(inner.shape) < 2:
            return inner
        swapped = inner.shape[::-1] if node.attr == "T" else (*inner.shape[:-2], inner.shape[-1], inner.shape[-2])
        return replace(inner, shape=swapped, layout=True)
    if isinstance(node, ast.Subscript):
        inner = read_recipe(node.value)
        shape = _sliced(inner.shape, node.slice) if inner else None
        return replace(inner, shape=shape, layout=True) if inner and shape is not None else None
    if isinstance(node, ast.BinOp):
        for side, other in ((node.left, node.right), (node.right, node.left)):
            inner = read_recipe(side)
            if inner and _literal(other) is not None:
                floating = isinstance(node.op, ast.Div) or isinstance(_literal(other), float)
                dtype = "float32" if floating and not inner.floating else inner.dtype
                return replace(inner, values=True, dtype=dtype)
        return None
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = read_recipe(node.operand)
        return replace(inner, values=True) if inner else None
    return None


def _is_torch(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "torch"


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return None


def _dtype_name(node: ast.expr | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) and _is_torch(node.value) else ""


def _factory(node: ast.Call, name: str) -> Recipe | None:
    keywords = {keyword.arg: keyword.value for keyword in node.keywords}
    if None in keywords or set(keywords) - {"dtype", "requires_grad", "size", "device", "generator"}:
        return None
    arguments = [_literal(argument) for argument in node.args]
    shape: Shape | None = None
    dtype, values = "float32", False
    if name in _SIZES:
        shape = _shape(_literal(keywords["size"]) if "size" in keywords else _unpacked(arguments))
    elif name == "full" and arguments:
        shape, values = _shape(arguments[0]), True
        dtype = _dtype_of(arguments[1] if len(arguments) > 1 else 0.0)
    elif name == "randint" and arguments:
        shape, dtype = _shape(arguments[-1]), "int64"
    elif name == "arange" and len(arguments) == 1 and isinstance(arguments[0], (int, float)):
        shape, dtype = (max(0, math.ceil(arguments[0])),), _dtype_of(arguments[0])
    elif name in ("linspace", "logspace") and len(arguments) == 3 and isinstance(arguments[2], int):
        shape, values = (arguments[2],), True
    elif name == "tensor" and len(arguments) == 1 and arguments[0] is not None:
        shape, values, dtype = _nested(arguments[0]), True, _dtype_of(arguments[0])
    elif name in ("eye", "randperm") and len(arguments) == 1 and isinstance(arguments[0], int):
        count = arguments[0]
        shape, values = ((count, count) if name == "eye" else (count,)), True
        dtype = "float32" if name == "eye" else "int64"
    if shape is None:
        return None
    dtype = _dtype_name(keywords.get("dtype")) or dtype
    gradient = "requires_grad" in keywords and _literal(keywords["requires_grad"]) is True
    return Recipe(name, shape, dtype, values=values, gradient=gradient)


def _unpacked(arguments: Sequence[object]) -> object:
    return arguments[0] if len(arguments) == 1 and isinstance(arguments[0], (tuple, list)) else tuple(arguments)


def _shape(value: object) -> Shape | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = (value,)
    if isinstance(value, (tuple, list)) and all(isinstance(size, int) and size >= 0 for size in value):
        return tuple(value)
    return None


def _nested(value: object) -> Shape | None:
    """Shape of a nested list of numbers; None where it is ragged."""
    if not isinstance(value, (list, tuple)):
        return ()
    inner = {_nested(item) for item in value}
    if len(inner) > 1 or None in inner:
        return None
    return (len(value), *(next(iter(inner)) or ())) if inner else (0,)


def _dtype_of(value: object) -> str:
    while isinstance(value, (list, tuple)):
        value = value[0] if value else 0.0
    if isinstance(value, bool):
        return "bool"
    return "int64" if isinstance(value, int) else "complex64" if isinstance(value, complex) else "float32"


def _step(made: Recipe, name: str, node: ast.Call) -> Recipe | None:
    """The recipe after one method call."""
    arguments = [_literal(argument) for argument in node.args]
    numbers = [number for number in arguments if isinstance(number, int)]
    plain = not node.keywords and len(numbers) == len(arguments)
    rank = len(made.shape)
    if name in _KEEPS:
        gradient = made.gradient or (name == "requires_grad_" and arguments[:1] != [False])
        return replace(made, layout=made.layout or _KEEPS[name], gradient=gradient)
    if name in _CASTS and not node.args:
        return replace(made, dtype=_CASTS[name])
    if name == "to" and len(node.args) == 1 and _dtype_name(node.args[0]):
        return replace(made, dtype=_dtype_name(node.args[0]))
    if name == "to" and all(keyword.arg == "memory_format" for keyword in node.keywords) and not node.args:
        return replace(made, layout=True)
    if name in _VALUES:
        return replace(made, values=True)
    if name == "t" and rank <= 2:
        return replace(made, shape=made.shape[::-1], layout=True)
    if name in ("transpose", "swapaxes") and plain and len(numbers) == 2 and rank:
        order = list(range(rank))
        first, second = (number % rank for number in numbers)
        order[first], order[second] = order[second], order[first]
        return replace(made, shape=tuple(made.shape[index] for index in order), layout=True)
    if name == "permute":
        chosen = _shape_of_signed(_unpacked(arguments), rank)
        if chosen is None or sorted(chosen) != list(range(rank)):
            return None
        return replace(made, shape=tuple(made.shape[index] for index in chosen), layout=True)
    if name in ("expand", "reshape", "view"):
        wanted = _unpacked(arguments)
        if not isinstance(wanted, (tuple, list)) or not all(isinstance(size, int) for size in wanted):
            return None
        shape = _expanded(made.shape, wanted) if name == "expand" else _reshaped(made.shape, wanted)
        return replace(made, shape=shape, layout=made.layout or name == "expand") if shape is not None else None
    if name == "unsqueeze" and plain and len(numbers) == 1:
        place = numbers[0] % (rank + 1)
        return replace(made, shape=(*made.shape[:place], 1, *made.shape[place:]))
    return None


def _shape_of_signed(value: object, rank: int) -> list[int] | None:
    if not isinstance(value, (tuple, list)) or not rank or not all(isinstance(item, int) for item in value):
        return None
    return [item % rank for item in value]


def _expanded(shape: Shape, wanted: Sequence[int]) -> Shape | None:
    if len(wanted) < len(shape):
        return None
    padded = (1,) * (len(wanted) - len(shape)) + shape
    return tuple(have if size == -1 else size for have, size in zip(padded, wanted))


def _reshaped(shape: Shape, wanted: Sequence[int]) -> Shape | None:
    if list(wanted).count(-1) > 1:
        return None
    rest = math.prod(size for size in wanted if size != -1)
    if -1 in wanted and not rest:
        return None
    return tuple(math.prod(shape) // rest if size == -1 else size for size in wanted)


def _sliced(shape: Shape, index: ast.expr) -> Shape | None:
    """Shape after indexing with slices, numbers, ``None`` and ``...``."""
    parts = list(index.elts) if isinstance(index, ast.Tuple) else [index]
    taken = sum(not (isinstance(part, ast.Constant) and part.value in (None, ...)) for part in parts)
    if taken > len(shape):
        return None
    rest = list(shape)
    out: list[int] = []
    dots = False
    for part in parts:
        if isinstance(part, ast.Slice):
            bounds = [_literal(bound) if bound else None for bound in (part.lower, part.upper, part.step)]
            whole = [bound for bound in bounds if isinstance(bound, int)]
            if len(whole) != sum(bound is not None for bound in bounds) or bounds[2] == 0:
                return None
            lower, upper, step = (bound if isinstance(bound, int) else None for bound in bounds)
            out.append(len(range(rest.pop(0))[lower:upper:step]))
        elif isinstance(part, ast.Constant) and part.value is None:
            out.append(1)
        elif isinstance(part, ast.Constant) and part.value is ... and not dots:
            dots = True
            behind = sum(
                not (isinstance(later, ast.Constant) and later.value is None)
                for later in parts[parts.index(part) + 1 :]
            )
            while len(rest) > behind:
                out.append(rest.pop(0))
        elif isinstance(_literal(part), int):
            rest.pop(0)
        else:
            return None
    return (*out, *rest)
