"""Static values: which branch a test takes on a CPU, which values a loop or a parameter goes through."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from fuzzer.seeds.names import ABSENT, DEVICES, GPU_NAMES, dotted, flag, last_part
from fuzzer.seeds.source import SourceFile

#: "cannot tell"; compares equal to nothing but itself.
UNKNOWN = object()


class Folder:
    """Evaluates what can be known of an expression. ``local`` holds the right-hand sides of local assignments."""

    def __init__(self, source: SourceFile, local: Mapping[str, ast.expr]) -> None:
        self.source = source
        self.local = local

    def value(self, node: ast.expr, depth: int = 6) -> Any:
        """A plain value, a dotted torch name as text, or ``UNKNOWN``."""
        if depth == 0:
            return UNKNOWN
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, (ast.Tuple, ast.List, ast.Set)):
            items = [self.value(item, depth - 1) for item in node.elts]
            return UNKNOWN if UNKNOWN in items else tuple(items)
        if isinstance(node, ast.Name):
            return self._name(node.id, depth)
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.value(node.operand, depth - 1)
            return UNKNOWN if inner is UNKNOWN else not inner
        if isinstance(node, ast.BoolOp):
            return self._logic(node, depth)
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node, depth)
        if isinstance(node, ast.Call):
            return self._call(node)
        return UNKNOWN

    def _name(self, name: str, depth: int) -> Any:
        if name in GPU_NAMES:
            return "cuda"
        if name in self.local:
            return self.value(self.local[name], depth - 1)
        if name in DEVICES:
            return "cpu"
        if flag(name) is not None:
            return flag(name)
        node = self.source.table.get(name)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            return self.value(node.value, depth - 1)
        return UNKNOWN

    def _attribute(self, node: ast.Attribute) -> Any:
        root = dotted(node)
        if root.split(".")[0] in ("self", "cls") and root.split(".")[-1] in DEVICES:
            return "cpu"
        full = self.source.full_name(node)
        if full in ("torch.version.hip", "torch.version.cuda", "torch.version.xpu"):
            return None
        return full if full.startswith("torch.") and full.count(".") == 1 else UNKNOWN

    def _logic(self, node: ast.BoolOp, depth: int) -> Any:
        decisive = isinstance(node.op, ast.Or)
        values = [self.value(item, depth - 1) for item in node.values]
        if any(value is not UNKNOWN and bool(value) is decisive for value in values):
            return decisive
        return UNKNOWN if any(value is UNKNOWN for value in values) else not decisive

    def _compare(self, node: ast.Compare, depth: int) -> Any:
        left, right = self.value(node.left, depth - 1), self.value(node.comparators[0], depth - 1)
        if left is UNKNOWN or right is UNKNOWN:
            return UNKNOWN
        try:
            return _COMPARE[type(node.ops[0])](left, right)
        except (KeyError, TypeError):
            return UNKNOWN

    def _call(self, node: ast.Call) -> Any:
        name = last_part(node.func)
        if ABSENT.fullmatch(name):
            return False
        if name == "device_count":
            return 0
        if name == "is_dtype_supported":
            return True
        return UNKNOWN

    def elements(self, node: ast.expr, depth: int = 6) -> list[ast.expr] | None:
        """The elements that an iterable goes through, as expressions; None where the text does not say."""
        if depth == 0:
            return None
        if isinstance(node, (ast.List, ast.Tuple, ast.Set)):
            return None if any(isinstance(item, ast.Starred) for item in node.elts) else list(node.elts)
        if isinstance(node, ast.Name):
            bound = self.local.get(node.id)
            if bound is None:
                statement = self.source.table.get(node.id)
                bound = statement.value if isinstance(statement, ast.Assign) else None
            return self.elements(bound, depth - 1) if bound is not None else None
        if isinstance(node, ast.Call):
            return self._call_elements(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            left, right = self.elements(node.left, depth - 1), self.elements(node.right, depth - 1)
            return left + right if left and right else None
        return None

    def _call_elements(self, node: ast.Call, depth: int) -> list[ast.expr] | None:
        name = last_part(node.func)
        if name == "range" and len(node.args) == 1 and isinstance(self.value(node.args[0]), int):
            return [ast.Constant(number) for number in range(min(int(self.value(node.args[0])), 8))]
        parts = [self.elements(argument, depth - 1) for argument in node.args]
        known = [part for part in parts if part]
        if not parts or len(known) != len(parts):
            return None
        if name == "enumerate":
            return [ast.Tuple([ast.Constant(i), item], ast.Load()) for i, item in enumerate(known[0])]
        if name == "zip":
            return [ast.Tuple(list(items), ast.Load()) for items in zip(*known)]
        if name in ("list", "tuple", "sorted", "reversed", "set"):
            return known[0]
        if name == "product":  # a diagonal through the product meets every value with few programs
            longest = max(len(part) for part in known)
            return [ast.Tuple([part[k % len(part)] for part in known], ast.Load()) for k in range(longest)]
        return None


_COMPARE = {
    ast.Eq: lambda a, b: a == b,
    ast.NotEq: lambda a, b: a != b,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
    ast.Is: lambda a, b: a is b or a == b,
    ast.IsNot: lambda a, b: not (a is b or a == b),
    ast.Lt: lambda a, b: a < b,
    ast.LtE: lambda a, b: a <= b,
    ast.Gt: lambda a, b: a > b,
    ast.GtE: lambda a, b: a >= b,
}
