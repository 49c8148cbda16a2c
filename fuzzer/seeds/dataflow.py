"""Which lines of a test an expression needs, and which of them are plain data that all runs may share."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Sequence

from fuzzer.seeds.clean import Cleaner, is_check
from fuzzer.seeds.names import PLAIN_CALLS, dotted, last_part
from fuzzer.seeds.source import SourceFile, bound_names, read_names
from fuzzer.seeds.straighten import Line

_REGISTERING = re.compile(r"^\w+\.(register_\w+|impl|py_impl)\b")


class Flow:
    """Data flow over the straight line of one test. Lines are named by their index."""

    def __init__(self, source: SourceFile, lines: Sequence[Line], cleaner: Cleaner) -> None:
        self.source = source
        self.lines = lines
        self.binds = [frozenset(bound_names(line.node)) for line in lines]
        # of the cleaned line: what only a compile decorator or an assertion reads is not needed
        cleaned = [cleaner.statement(line.node) for line in lines]
        self.reads = [frozenset(read_names(node)) if node is not None else frozenset[str]() for node in cleaned]
        self.changes = [frozenset(_changed(line.node)) for line in lines]
        self.local_classes = {line.node.name: line.node for line in lines if isinstance(line.node, ast.ClassDef)}

    def binding(self, name: str, before: int) -> int | None:
        """The last line before ``before`` that binds the name."""
        return next((index for index in range(before - 1, -1, -1) if name in self.binds[index]), None)

    def is_local(self, name: str, before: int) -> bool:
        return self.binding(name, before) is not None

    def needed(self, names: Iterable[str], before: int, hidden: Iterable[str] = ()) -> list[int]:
        """Lines before ``before`` that make or change the values of ``names``, in order.

        ``hidden`` names come from elsewhere (module level), so nothing that only makes them is kept; calls of one of
        them on its own are taken as uses, not as changes.
        """
        gone = set(hidden)
        wanted = set(names) - gone
        kept: list[int] = []
        for index in range(before - 1, -1, -1):
            node = self.lines[index].node
            made = self.binds[index] & wanted
            if not made and not (self.changes[index] & wanted and not self._is_use(node, gone)):
                continue
            kept.append(index)
            if made and isinstance(node, (ast.Assign, ast.FunctionDef, ast.ClassDef)):
                wanted -= self.binds[index]
            wanted |= self.reads[index] - gone
        return kept[::-1]

    def _is_use(self, node: ast.stmt, hidden: set[str]) -> bool:
        if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
            return False
        return isinstance(node.value.func, ast.Name) and node.value.func.id in hidden

    def libraries(self, before: int) -> list[int]:
        """Lines that make and fill a torch.library.Library, whose operators are then reached by torch.ops alone."""
        names = [name for index in range(before) for name in self.binds[index] if self._is_library(index)]
        return self.needed(names, before) if names else []

    def _is_library(self, index: int) -> bool:
        node = self.lines[index].node
        return (
            isinstance(node, ast.Assign)
            and isinstance(node.value, ast.Call)
            and last_part(node.value.func) == "Library"
        )

    # -- plain data -------------------------------------------------------------------------------------------

    def plain(self, name: str, before: int, depth: int = 8) -> list[int] | None:
        """Lines that bind a name which may stand at module level, its needs first; None where it may not.

        That is: bound once, never changed, a definition or data that no call of torch made.
        """
        index = self.binding(name, before)
        if depth == 0 or index is None:
            return None
        if any(name in self.changes[other] for other in range(before)):
            return None
        if sum(name in bound for bound in self.binds[:before]) > 1 and not self._settled(name, index):
            return None
        node = self.lines[index].node
        if isinstance(node, ast.Assign):
            if len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name) or not self._plain_value(node.value):
                return None
        elif not isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)):
            return None
        found: list[int] = []
        limit = before if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else index
        for other in sorted(self.reads[index] - {name}):
            if self.is_local(other, limit):
                inner = self.plain(other, limit, depth - 1)
                if inner is None:
                    return None
                found += [line for line in inner if line not in found]
        return [*found, index]

    def _settled(self, name: str, index: int) -> bool:
        """Rebound, but with something that does not read its earlier self."""
        return name not in self.reads[index]

    def _plain_value(self, node: ast.expr) -> bool:
        calls = [part for part in ast.walk(node) if isinstance(part, ast.Call)]
        if isinstance(node, ast.Lambda):
            return True
        return all(last_part(call.func) in PLAIN_CALLS or self.makes_object(call) for call in calls)

    def makes_object(self, call: ast.Call) -> bool:
        """Does the call make an instance of a class of the test that is neither a module nor a tensor?

        Such an object is no input: two of them never compare equal.
        """
        name = dotted(call.func)
        definition = self.local_classes.get(name) or self.source.classes.get(name)
        return definition is not None and not self._module_like(definition, 6)

    def _module_like(self, definition: ast.ClassDef, depth: int) -> bool:
        for base in definition.bases:
            name = last_part(base)
            inner = self.local_classes.get(name) or self.source.classes.get(name)
            if inner is not None and inner is not definition and depth:
                if self._module_like(inner, depth - 1):
                    return True
            elif name not in ("object", "ABC", "Enum", "IntEnum", "NamedTuple", "Protocol", "dict", "list", "tuple"):
                return True  # torch's own, or unknown: taken as a module
        return False


def registers_with(node: ast.stmt) -> set[str]:
    """Names that a definition registers itself with: ``@myop.register_fake``."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return {name for item in decorators for name in _roots(item) if _REGISTERING.search(ast.unparse(item))}


def _changed(node: ast.stmt) -> set[str]:
    """Names whose values a statement changes in place, as far as a test's set-up does such things."""
    if isinstance(node, ast.FunctionDef):
        return registers_with(node)
    if isinstance(node, (ast.ClassDef, ast.Import, ast.ImportFrom, ast.Assert)):
        return set()
    found: set[str] = set()
    for part in ast.walk(node):
        if isinstance(part, (ast.Subscript, ast.Attribute)) and isinstance(part.ctx, ast.Store):
            found |= _roots(part)
        elif isinstance(part, ast.AugAssign):
            found |= _roots(part.target)
        elif isinstance(part, ast.Expr) and isinstance(part.value, ast.Call) and not is_check(part.value):
            called = [item for item in part.value.args if not isinstance(item, ast.Call)]
            found |= {name for item in [part.value.func, *called] for name in _roots(item)}
    return found - {"torch", "self", "math", "np", "F", "nn"}


def _roots(node: ast.AST) -> set[str]:
    while isinstance(node, (ast.Attribute, ast.Subscript, ast.Call, ast.Starred)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return {node.id} if isinstance(node, ast.Name) else set()
