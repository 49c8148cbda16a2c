"""What each statement of ``fn`` is: families and groups of its operators, and the words that its text carries."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from functools import lru_cache

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView
from fuzzer.features.detect import default_space
from fuzzer.features.detect_text import read_statement
from fuzzer.knowledge.families import IN_PLACE, OTHER, Families

#: Families of what has no name in Python.
_SIGNS: Mapping[type, str] = {
    ast.MatMult: "matmul", ast.LShift: "bitwise", ast.RShift: "bitwise", ast.BitXor: "bitwise", ast.BitAnd: "bitwise",
    ast.BitOr: "bitwise", ast.Invert: "bitwise", ast.USub: "pointwise_unary",
}  # fmt: skip
_CASTS = frozenset(
    {"to", "type", "type_as", "half", "bfloat16", "float", "double", "int", "long", "short", "char", "byte", "bool"}
)
_VIEW_ATTRIBUTES = frozenset({"T", "mT", "H", "mH"})


@lru_cache(maxsize=1)
def _families() -> Families:
    return Families.load()


def families(statement: Statement) -> frozenset[str]:
    """Operator families that the statement's text names; empty for calls of modules and helpers."""
    found: set[str] = set()
    for node in ast.walk(statement.node):
        if isinstance(node, ast.Call):
            found |= _of_call(node)
        elif isinstance(node, (ast.BinOp, ast.AugAssign)):
            found.add(_SIGNS.get(type(node.op), "pointwise_binary"))
            found |= {IN_PLACE} if isinstance(node, ast.AugAssign) else set()
        elif isinstance(node, ast.UnaryOp) and not isinstance(node.operand, ast.Constant):
            found.add(_SIGNS.get(type(node.op), "pointwise_unary"))
        elif isinstance(node, ast.Compare):
            found.add("comparison")
        elif isinstance(node, ast.Subscript) and ".shape" not in ast.unparse(node.value):
            found |= {"view", "index_read"} if isinstance(node.ctx, ast.Load) else {"index_write", IN_PLACE}
        elif isinstance(node, ast.Attribute) and node.attr in _VIEW_ATTRIBUTES:
            found.add("view")
        elif isinstance(node, ast.Attribute) and node.attr in ("real", "imag"):
            found.add("complex")
    return frozenset(found - {OTHER, ""})


def _of_call(node: ast.Call) -> set[str]:
    if not isinstance(node.func, (ast.Attribute, ast.Name)):
        return set()
    name = ast.unparse(node.func)
    last = name.rpartition(".")[2]
    if isinstance(node.func, ast.Name) and not name.startswith("F."):
        return set()  # a helper, a module, a builtin
    found = {_families().of(name.removeprefix("torch.")), _families().of(last), _families().of(last.rstrip("_"))}
    if isinstance(node.func, ast.Attribute) and name.rpartition(".")[0] not in ("torch", "F") and last in _CASTS:
        found.add("cast")
    return found


def opaque(view: ProgramView) -> list[int]:
    """Statements that call something whose operators the text does not tell: modules, helpers, closures."""
    return [
        index
        for index, statement in enumerate(view.body)
        if not families(statement) and any(isinstance(node, ast.Call) for node in ast.walk(statement.node))
    ]


def of_families(view: ProgramView, wanted: frozenset[str]) -> list[int]:
    """Statements with an operator of the families; where none has, those of which it cannot be told."""
    found = [index for index, statement in enumerate(view.body) if families(statement) & wanted]
    return found or opaque(view)


def of_group(view: ProgramView, group: str) -> list[int]:
    """Statements of a group of families, as adjacency names it (``pointwise``, ``cast``, ``inplace``)."""
    return [index for index, statement in enumerate(view.body) if group in groups(statement)]


def groups(statement: Statement) -> frozenset[str]:
    """Groups of families of one statement."""
    table = default_space().group_of
    found = {table.get(family, "") for family in families(statement)}
    if "cast" in families(statement):
        found.add("cast")
    if any(_in_place(node) for node in ast.walk(statement.node)):
        found.add("inplace")
    return frozenset(found - {""})


def _in_place(node: ast.AST) -> bool:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        return node.func.attr.endswith("_") and not node.func.attr.endswith("__")
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store))


def with_word(view: ProgramView, group: str, word: str) -> list[int]:
    """Statements whose text carries a word of a group of ``detect_text``."""
    return [index for index, statement in enumerate(view.body) if word in read_statement(statement.node)[group]]


def edges(view: ProgramView, left: str, right: str) -> Iterator[int]:
    """Statements of one group whose result is read by one of the other."""
    targets = of_group(view, right)
    for index in of_group(view, left):
        bound = {*view.body[index].targets, *view.body[index].writes}
        if any(later > index and bound & view.body[later].reads for later in targets):
            yield index
