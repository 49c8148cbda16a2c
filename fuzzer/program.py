"""A program: one test in the contract of three names, ``META``, ``build_inputs`` and ``fn``.

The text is the truth. Nothing here executes it: everything is read from the syntax tree.
"""

from __future__ import annotations

import ast
import hashlib
from dataclasses import dataclass
from typing import Any

from fuzzer.exits import UserError

#: Values of ``META["mode"]``. ``backward`` and ``train`` compare gradients too; ``dynamic`` compiles with
#: symbolic sizes; ``eval`` is a module in evaluation mode; ``jit_trace`` uses torch.jit.trace in place of compile.
MODES = ("forward", "backward", "dynamic", "train", "eval", "jit_trace")

#: What a program may import. Programs come from models and strangers; the check runs before anything else does.
ALLOWED_IMPORTS = frozenset(
    {"torch", "math", "functools", "itertools", "collections", "typing", "operator", "dataclasses", "contextlib",
     "numpy", "enum", "copy", "warnings", "random", "__future__"}
)  # fmt: skip


class ProgramError(UserError):
    """The text is not a program: syntax error, a name of the contract missing, an import that is not allowed."""


@dataclass(frozen=True)
class Program:
    """One test. ``text`` is complete and runs with nothing but torch installed."""

    text: str
    meta: dict[str, Any]
    source: str = "<program>"

    @property
    def id(self) -> str:
        """Content address: the first 16 hexadecimal digits of the text's SHA-256."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def mode(self) -> str:
        return str(self.meta.get("mode", "forward"))

    @classmethod
    def parse(cls, text: str, source: str = "<program>") -> Program:
        """Read and check the contract.

        Raises:
            ProgramError: one line naming the file, the line and the remedy.
        """
        tree = _parse_tree(text, source)
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        for name in ("build_inputs", "fn"):
            if name not in functions and name not in _assigned_names(tree):
                raise ProgramError(f"{source}: no function `{name}`; a program defines build_inputs() and fn(*args)")
        check_imports(tree, source)
        meta = _literal_meta(tree, source)
        mode = meta.get("mode", "forward")
        if mode not in MODES:
            raise ProgramError(f"{source}: META['mode'] is {mode!r}; use one of {', '.join(MODES)}")
        return cls(text=text, meta=meta, source=source)


def _parse_tree(text: str, source: str) -> ast.Module:
    try:
        return ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"{source}:{line}" if line else source
        reason = getattr(error, "msg", None) or str(error) or type(error).__name__
        raise ProgramError(f"{where}: not valid Python ({reason}); mend the syntax") from None


def _assigned_names(tree: ast.Module) -> set[str]:
    """Top-level names bound by assignment: ``fn = SomeModule()`` and ``fn = lambda x: …`` are allowed."""
    targets = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    return {target.id for target in targets if isinstance(target, ast.Name)}


def check_imports(tree: ast.Module, source: str) -> None:
    """Refuse imports outside ``ALLOWED_IMPORTS``, wherever in the program they stand.

    What only a script runs (``if __name__ == "__main__":``, as in exported repros) never runs here.
    """
    for node in (inner for statement in tree.body if not _is_main_guard(statement) for inner in ast.walk(statement)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        else:
            continue
        for name in names:
            if name.split(".")[0] not in ALLOWED_IMPORTS:
                raise ProgramError(
                    f"{source}:{node.lineno}: import of {name!r} is not allowed in a program; "
                    f"allowed: {', '.join(sorted(ALLOWED_IMPORTS))}"
                )


def _is_main_guard(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.If) and ast.unparse(statement.test) == "__name__ == '__main__'"


def _literal_meta(tree: ast.Module, source: str) -> dict[str, Any]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(t, ast.Name) and t.id == "META" for t in node.targets):
            try:
                meta = ast.literal_eval(node.value)
            except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
                raise ProgramError(f"{source}:{node.lineno}: META holds more than plain literals") from None
            if not isinstance(meta, dict) or not all(isinstance(key, str) for key in meta):
                raise ProgramError(f"{source}:{node.lineno}: META is not a dict with string keys")
            return meta
    return {}
