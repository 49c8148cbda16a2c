"""A file of somebody's tests: its definitions, its imports, its tests. Read from the syntax tree, nothing runs."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from fuzzer.engines.statement import Facts
from fuzzer.exits import UserError
from fuzzer.seeds.names import dotted, last_part


class SourceError(UserError):
    """The file cannot be read, or is not Python."""


@dataclass(frozen=True)
class Test:
    """One test of a file. ``body`` is its function; ``owner`` the class that it belongs to.

    ``made_by``: the test is what a factory of the suite makes of a callable (``test_x = make_test(M())``); then the
    callable is given, and its inputs are not.
    """

    name: str
    body: list[ast.stmt]
    function: ast.FunctionDef | None = None
    owner: ast.ClassDef | None = None
    callable: ast.expr | None = None
    line: int = 0

    __test__ = False  # not for pytest

    @property
    def title(self) -> str:
        return f"{self.owner.name}.{self.name}" if self.owner else self.name


@dataclass
class SourceFile:
    """``table``: name → module-level statement that binds it. ``imports``: name → (module, attribute or "")."""

    path: Path
    tree: ast.Module
    table: dict[str, ast.stmt] = field(default_factory=dict)
    imports: dict[str, tuple[str, str]] = field(default_factory=dict)
    classes: dict[str, ast.ClassDef] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> SourceFile:
        """Raises ``SourceError``, one line."""
        try:
            text = path.read_text("utf-8")
        except OSError as error:
            raise SourceError(f"{path}: cannot be read ({error.strerror})") from None
        except UnicodeDecodeError:
            raise SourceError(f"{path}: not UTF-8 text") from None
        return cls.parse(text, path)

    @classmethod
    def parse(cls, text: str, path: Path = Path("<text>")) -> SourceFile:
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError) as error:
            raise SourceError(f"{path}: not valid Python ({getattr(error, 'msg', error)})") from None
        file = cls(path, tree)
        for node in _unfolded(tree.body):
            file._note(node)
        return file

    def _note(self, node: ast.stmt) -> None:
        if isinstance(node, ast.ClassDef):
            self.classes[node.name] = node
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            self._note_import(node)
            return
        for name in bound_names(node):
            if name not in self.imports:
                self.table[name] = node

    def _note_import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                module = "." * node.level + (node.module or "")
                self.imports[alias.asname or alias.name] = (module, alias.name)
            elif alias.asname:
                self.imports[alias.asname] = (alias.name, "")
            else:
                self.imports[alias.name.split(".")[0]] = (alias.name.split(".")[0], "")

    def full_name(self, node: ast.AST) -> str:
        """``dotted`` with the import's own path in place of its first part: ``dynamo.optimize`` → torch._dynamo.…"""
        text = dotted(node)
        root, _, rest = text.partition(".")
        if root not in self.imports:
            return text
        module, attribute = self.imports[root]
        return ".".join(part for part in (module, attribute, rest) if part)

    def members(self, owner: ast.ClassDef | None) -> dict[str, ast.stmt]:
        """Methods and attributes of a class, those of its bases in the same file included."""
        found: dict[str, ast.stmt] = {}
        for base in self._lineage(owner, 8):
            for node in base.body:
                for name in bound_names(node):
                    found.setdefault(name, node)
        return found

    def _lineage(self, owner: ast.ClassDef | None, depth: int) -> Iterator[ast.ClassDef]:
        if owner is None or depth == 0:
            return
        yield owner
        for base in owner.bases:
            yield from self._lineage(self.classes.get(last_part(base)), depth - 1)

    def tests(self) -> list[Test]:
        """Test methods, test functions; a file without any is a script, which is one test."""
        found: list[Test] = []
        for node in _unfolded(self.tree.body):
            if isinstance(node, ast.ClassDef):
                found += self._class_tests(node)
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                found.append(Test(node.name, node.body, node, None, line=node.lineno))
        return found or self._script()

    def _class_tests(self, owner: ast.ClassDef) -> list[Test]:
        found = []
        for node in owner.body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                found.append(self._method_test(node, owner))
            elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and node.value.args:
                target = node.targets[0]
                factory = last_part(node.value.func)
                if isinstance(target, ast.Name) and target.id.startswith("test") and factory in self.table:
                    found.append(Test(target.id, [], None, owner, node.value.args[0], node.lineno))
        return found

    def _method_test(self, node: ast.FunctionDef, owner: ast.ClassDef) -> Test:
        parameters = [argument.arg for argument in node.args.args]
        wrapped = any(last_part(decorator) in self.table for decorator in node.decorator_list)
        if wrapped and parameters[:1] != ["self"]:  # a decorator makes a test of a plain function
            return Test(node.name, [], node, owner, ast.Name(node.name, ast.Load()), node.lineno)
        return Test(node.name, node.body, node, owner, line=node.lineno)

    def _script(self) -> list[Test]:
        body = []
        for node in self.tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "__name__ == '__main__'":
                body += node.body
            elif not isinstance(node, (ast.Import, ast.ImportFrom)):
                body.append(node)
        return [Test(self.path.stem, copy.deepcopy(body), None, None, line=1)] if body else []


def _unfolded(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Module-level statements, those under ``if HAS_CPU:`` and the like included."""
    for node in body:
        if (isinstance(node, ast.If) and "__name__" not in ast.unparse(node.test)) or isinstance(node, ast.Try):
            yield from _unfolded([*node.body, *node.orelse])
        else:
            yield node


def bound_names(node: ast.stmt) -> list[str]:
    """Names that a statement binds in its own scope."""
    facts = Facts()
    facts.visit(node)
    return list(facts.binds)


def read_names(node: ast.AST) -> set[str]:
    """Free names that a node reads, decorators and bases of classes included."""
    facts = Facts()
    facts.visit(node)
    names = set(facts.reads)
    for part in ast.walk(node):
        if isinstance(part, ast.ClassDef):
            for extra in [*part.decorator_list, *part.keywords]:
                names |= {inner.id for inner in ast.walk(extra) if isinstance(inner, ast.Name)}
    return names
