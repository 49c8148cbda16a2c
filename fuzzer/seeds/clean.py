"""Rewrites what belongs to a test suite: devices, assertions, decorators, ``self``, compile calls inside helpers."""

from __future__ import annotations

import ast
import copy
from typing import Any, TypeVar

from fuzzer.program import ALLOWED_IMPORTS
from fuzzer.seeds.names import COMPARERS, DEVICES, HOMES, KEPT_DECORATORS, OTHER_DEVICE, dotted, last_part
from fuzzer.seeds.source import SourceFile
from fuzzer.seeds.straighten import Straightener

_Node = TypeVar("_Node", bound=ast.AST)


class Cleaner(ast.NodeTransformer):
    """``members``: methods and attributes of the test class, which ``self.x`` becomes a plain name of.

    ``used`` collects the names of members that were so reached.
    """

    def __init__(self, source: SourceFile, members: dict[str, ast.stmt], compiler: Straightener) -> None:
        self.source = source
        self.members = members
        self.compiler = compiler
        self.names: dict[str, str] = {}  # names that a program needs for something else
        self.classes = 0  # depth inside class bodies: there ``self`` is somebody else

    def clean(self, node: _Node) -> _Node:
        """A rewritten copy of an expression or a definition."""
        return ast.fix_missing_locations(self.visit(copy.deepcopy(node)))

    def statement(self, node: ast.stmt) -> ast.stmt | None:
        """A rewritten copy; None where nothing of it is left, as of an assertion."""
        new = self.visit(copy.deepcopy(node))
        return ast.fix_missing_locations(new) if new is not None else None

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self.names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self.names.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    # -- devices ------------------------------------------------------------------------------------------------

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        if isinstance(node.value, str) and OTHER_DEVICE.fullmatch(node.value):
            return ast.copy_location(ast.Constant("cpu"), node)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        root = dotted(node.value)
        if root in ("self", "cls", "self.__class__") and not self.classes:
            if node.attr in DEVICES:
                return ast.copy_location(ast.Constant("cpu"), node)
            if node.attr in self.members:
                return ast.copy_location(ast.Name(node.attr, node.ctx), node)
        if self.source.imports.get(root.split(".")[0], ("",))[0] == "torchdynamo" or root.startswith("torchdynamo"):
            text = self.source.full_name(node).replace("torchdynamo.", "torch._dynamo.", 1)
            return ast.copy_location(ast.parse(text, mode="eval").body, node)
        self.generic_visit(node)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        func = node.func
        if (
            isinstance(func, ast.Attribute)
            and func.attr in ("cuda", "npu", "xpu")
            and not dotted(func).startswith("torch")
        ):
            return self.visit(func.value)
        inner = self._compiled_inner(node)
        if inner is not None:
            return self.visit(inner)
        self.generic_visit(node)
        return node

    def _compiled_inner(self, node: ast.Call) -> ast.expr | None:
        """The function inside ``torch.compile(function)`` or ``torch._dynamo.optimize(…)(function)``."""
        return node.args[0] if self.compiler.wraps(node) else None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.AST:
        homes = {HOMES.get(alias.name, "") for alias in node.names}
        if (node.module or "").split(".")[0] not in ALLOWED_IMPORTS and len(homes) == 1 and homes != {""}:
            return ast.copy_location(ast.ImportFrom(homes.pop(), node.names, 0), node)
        return node

    # -- test framework -------------------------------------------------------------------------------------------

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        if isinstance(node.value, ast.Constant):
            return None  # docstrings
        if isinstance(node.value, ast.Call) and is_check(node.value):
            return None
        self.generic_visit(node)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST | None:
        return None if any(dotted(part) == "self" for part in ast.walk(node)) and not self.classes else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self.names.get(node.name, node.name)
        node.decorator_list = [item for item in node.decorator_list if self.matters(item)]
        registered = any("library" in ast.unparse(item) for item in node.decorator_list)
        if not registered:  # an operator's schema is read from its annotations
            node.returns = None
            for argument in ast.walk(node.args):
                if isinstance(argument, ast.arg):
                    argument.annotation = None
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def matters(self, decorator: ast.expr) -> bool:
        """Does a decorator change what its function computes?"""
        func = decorator.func if isinstance(decorator, ast.Call) else decorator
        if self.compiler.is_compiler(decorator):
            return False
        return bool(KEPT_DECORATORS.match(self.source.full_name(func)) or KEPT_DECORATORS.match(dotted(func)))

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self.classes += 1
        methods = [(item, item.name) for item in node.body if isinstance(item, ast.FunctionDef)]
        self.generic_visit(node)
        for method, name in methods:  # reached by attribute, so never in the way of a global name
            method.name = name
        self.classes -= 1
        node.body = node.body or [ast.Pass()]
        return node

    def _block(self, node: Any) -> ast.AST | None:
        self.generic_visit(node)
        if not node.body:
            if not getattr(node, "orelse", None):
                return None
            node.body = [ast.Pass()]
        return node

    visit_If = visit_For = visit_While = visit_With = _block


def is_check(call: ast.Call) -> bool:
    """An assertion of a test framework, a print, a reset: nothing that a program needs."""
    text, name = dotted(call.func), last_part(call.func)
    if text.startswith(("self.assert", "self.fail", "torch.testing.assert_", "FileCheck", "self.subTest")):
        return True
    if isinstance(call.func, ast.Attribute) and "FileCheck()" in ast.unparse(call.func):
        return True
    if (
        name.startswith(("assert", "run_and_get"))
        or name in COMPARERS
        or name in ("same", "print", "manual_seed", "backward", "reset_rng_state")
    ):
        return True
    return name in ("reset", "clear") and ("dynamo" in text or "metrics" in text or "counters" in text)
