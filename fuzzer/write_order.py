"""Is something overwritten after it was read? The order of statements that functionalisation has to keep. Pure.

Read from the text of ``fn``, statement by statement; branches and loops count as if they ran once.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

#: Calls whose result shares storage with what they are called on.
_VIEWS = frozenset(
    {"view", "view_as", "reshape", "t", "transpose", "permute", "narrow", "select", "slice", "diagonal", "unfold",
     "expand", "expand_as", "as_strided", "squeeze", "unsqueeze", "flatten", "unflatten", "swapaxes", "movedim",
     "detach", "alias", "chunk", "split", "unbind", "contiguous", "real", "imag", "view_as_real", "swapdims"}
)  # fmt: skip
#: Attributes that are views.
_VIEW_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "data", "real", "imag"})
#: Methods that end like in-place ones and write no element.
_NO_WRITE = frozenset({"requires_grad_", "detach_", "retain_grad_", "unsqueeze_", "squeeze_", "t_", "transpose_"})


def overwritten(text: str) -> str:
    """What is read and then written in place while the result of the reading is still used: one line, or nothing.

    ``y = x.clone(); x.zero_(); return y`` says so of ``x``; so does a write that reads its own target elsewhere,
    such as ``x[1:] = x[:-1]``. ``x.tan_(); return x.t()`` does not: nothing was read before the write.
    """
    statements = list(_statements(text))
    roots: dict[str, str] = {}
    readers: dict[str, list[tuple[str, str]]] = {}  # root → (name made from it, statement that made it)
    for number, statement in enumerate(statements):
        for target, beside in _writes(statement):
            root = roots.get(target, target)
            if any(roots.get(name, name) == root for name in beside):
                return f"`{target}` is read and written by one statement: {_short(statement)}"
            for name, made in readers.get(root, ()):
                if name != target and roots.get(name, name) != root and _used(name, statements[number + 1 :]):
                    return f"`{target}` is written ({_short(statement)}) after `{name}` was made from it ({made})"
        _bind(statement, roots, readers)
    return ""


def _statements(text: str) -> Iterator[ast.stmt]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == "fn":
            yield from _flat(node.body)


def _flat(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    for node in body:
        inner = [*getattr(node, "body", ()), *getattr(node, "orelse", ())]
        if inner and not isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            yield from _flat(inner)
        else:
            yield node


def _writes(statement: ast.stmt) -> Iterator[tuple[str, set[str]]]:
    """(name written in place, names that the same statement reads besides) pairs."""
    targets = statement.targets if isinstance(statement, ast.Assign) else []
    if isinstance(statement, ast.AugAssign):
        targets = [statement.target]
    value = getattr(statement, "value", None)
    for target in targets:
        name = _owner(target)
        if name and (isinstance(target, ast.Subscript) or isinstance(statement, ast.AugAssign)):
            # A whole-tensor ``x += x * 2`` reads what it writes element by element, in any order.
            yield name, _names(value) if isinstance(target, ast.Subscript) else set()
    for call in (node for node in ast.walk(statement) if isinstance(node, ast.Call)):
        written = _written(call)
        if written:
            arguments = [*call.args, *(keyword.value for keyword in call.keywords if keyword.arg != "out")]
            if not isinstance(call.func, ast.Attribute) or _owner(call.func.value) != written:
                arguments = arguments[1:] if arguments and _owner(arguments[0]) == written else arguments
            sliced = isinstance(call.func, ast.Attribute) and not isinstance(call.func.value, ast.Name)
            yield written, set().union(*map(_names, arguments)) if sliced and arguments else set()


def _written(call: ast.Call) -> str:
    """The name that a call writes to: ``x`` of ``x.add_(1)``, ``torch.relu_(x)``, ``torch.add(a, b, out=x)``."""
    out = next((_owner(keyword.value) for keyword in call.keywords if keyword.arg == "out"), "")
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if out or not name.endswith("_") or name.endswith("__") or name in _NO_WRITE:
        return out
    owner = _owner(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if owner in ("", "torch", "F"):
        return _owner(call.args[0]) if call.args else ""
    return owner


def _owner(node: ast.AST) -> str:
    """The variable at the root of ``x[1:].t().data``; empty where there is none."""
    while True:
        if isinstance(node, ast.Name):
            return node.id
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            node = node.value
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS:
            node = node.func.value
        else:
            return ""


def _names(node: ast.AST | None) -> set[str]:
    return {item.id for item in ast.walk(node) if isinstance(item, ast.Name)} if node is not None else set()


def _bind(statement: ast.stmt, roots: dict[str, str], readers: dict[str, list[tuple[str, str]]]) -> None:
    """Take note of the names that a statement binds: an alias of a root, or something made from it."""
    if not isinstance(statement, ast.Assign):
        return
    value = statement.value
    names = [item.id for target in statement.targets for item in _bound(target)]
    alias = _owner(value) if _is_view(value) else ""
    for name in names:
        roots.pop(name, None)
        if alias:
            roots[name] = roots.get(alias, alias)
    for read in _names(value):
        for name in names:
            readers.setdefault(roots.get(read, read), []).append((name, _short(statement)))


def _bound(target: ast.expr) -> Iterator[ast.Name]:
    items = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
    yield from (item for item in items if isinstance(item, ast.Name))


def _is_view(node: ast.AST) -> bool:
    if isinstance(node, ast.Subscript):
        return not any(isinstance(part, (ast.Call, ast.Name)) for part in ast.walk(node.slice))  # x[indices] is a copy
    if isinstance(node, ast.Name):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr in _VIEW_ATTRIBUTES
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    # An in-place method returns what it wrote to.
    return node.func.attr in _VIEWS or (node.func.attr.endswith("_") and not node.func.attr.endswith("__"))


def _used(name: str, later: list[ast.stmt]) -> bool:
    return any(name in _names(statement) for statement in later)


def _short(statement: ast.stmt) -> str:
    text = " ".join(ast.unparse(statement).split())
    return text if len(text) <= 60 else text[:59] + "…"
