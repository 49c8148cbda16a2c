"""The inventory of one torch's compiler: what it has, each with a hash that changes when its source does.

Names come from a script that the target runs; sources are read and hashed here, so that both sides of a comparison go
through one parser, whatever Python each runs. Comments, docstrings, formatting and positions do not count.
"""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import harness
from fuzzer.exits import Exit, UserError

#: Folders of torch whose sources are compared.
FOLDERS = ("_inductor", "_decomp", "_functorch", "_dynamo")
_SCRIPT = Path(harness.__file__).parent / "inventory.py"
_SECONDS = 600.0
#: Operators, overloads counted, that a function may serve and still be theirs.
_SHARED = 24


@dataclass(frozen=True)
class Inventory:
    """Names → hashes. ``files``: path below torch's folder; ``functions``: ``path:qualified.name``."""

    version: str
    schemas: Mapping[str, str] = field(default_factory=dict)
    lowerings: Mapping[str, str] = field(default_factory=dict)
    decompositions: Mapping[str, str] = field(default_factory=dict)
    fallbacks: Sequence[str] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, str] = field(default_factory=dict)


def take(python: str) -> Inventory:
    """Inventory of the torch that an interpreter has.

    Raises:
        UserError: it has none, cannot be run, or says something else (exit status of a target that cannot start).
    """
    try:
        done = subprocess.run(
            [python, "-I", str(_SCRIPT)], capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except OSError as error:
        raise UserError(f"{python}: cannot be run ({error.strerror}); name a Python with torch", Exit.TARGET) from None
    except subprocess.TimeoutExpired:
        raise UserError(f"{python}: no answer within {_SECONDS:.0f} s; is the machine busy?", Exit.TARGET) from None
    lines = done.stderr.strip().splitlines()
    if done.returncode:
        raise UserError(f"{python}: {lines[-1] if lines else 'it died'}; name a Python with torch", Exit.TARGET)
    try:
        data = json.loads(done.stdout[done.stdout.index("{") :])
        return of_names(data)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{python}: its inventory cannot be read ({error!r})", Exit.TARGET) from None


def of_names(data: Mapping[str, Any]) -> Inventory:
    """From what the script printed, and the sources below its ``root``."""
    root = Path(data["root"])
    hashes = Hashes(root)
    files, functions = {}, {}
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            name = path.relative_to(root).as_posix()
            files[name] = hashes.file(name)
            functions.update({f"{name}:{where}": value for where, value in hashes.of(name).items() if where})
    return Inventory(
        version=str(data["torch"]),
        schemas={name: digest(text) for name, text in data["schemas"].items()},
        lowerings=_implementations(data["lowerings"], hashes),
        decompositions=_implementations(data["decompositions"], hashes),
        fallbacks=tuple(data["fallbacks"]),
        files=files,
        functions=functions,
    )


def _implementations(table: Mapping[str, Sequence[Sequence[str]]], hashes: Hashes) -> dict[str, str]:
    """Operator → hash over the functions that implement it and it alone, or few others.

    What dozens of operators share (``make_pointwise``) changes with every version, and says nothing of one of them; it
    is seen among the functions. Where functions moved, but read the same, nothing changed.
    """
    users = Counter((path, where) for places in table.values() for path, where in places)
    found = {}
    for name, places in table.items():
        own = [(path, where) for path, where in places if not path or users[path, where] <= _SHARED]
        found[name] = digest(
            "\n".join(sorted(hashes.of(path).get(where, where) if path else where for path, where in own))
        )
    return found


class Hashes:
    """Hashes of the functions of source files, each file parsed once."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._found: dict[str, dict[str, str]] = {}

    def of(self, name: str) -> dict[str, str]:
        """Qualified name → hash; "" stands for the whole file."""
        if name not in self._found:
            try:
                self._found[name] = function_hashes((self._root / name).read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError):
                self._found[name] = {}
        return self._found[name]

    def file(self, name: str) -> str:
        return self.of(name).get("", "")


def function_hashes(text: str) -> dict[str, str]:
    """Qualified name (as in ``__qualname__``) → hash of the function; "" → hash of the whole.

    A file that this Python cannot parse (a newer syntax) has only the latter, taken over its lines.
    """
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return {"": digest("\n".join(line.strip() for line in text.splitlines() if not line.lstrip().startswith("#")))}
    for node in ast.walk(tree):
        _drop_docstring(node)
    found: dict[str, str] = {"": digest(ast.dump(tree))}
    for name, function in _functions(tree, ""):
        found[name] = digest(found.get(name, "") + ast.dump(function))  # a name that is defined twice is both
    return found


def _drop_docstring(node: ast.AST) -> None:
    if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
        first = node.body[0] if node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            node.body = node.body[1:] or [ast.Pass()]


def _functions(node: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield prefix + child.name, child
            yield from _functions(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _functions(child, f"{prefix}{child.name}.")
        else:
            yield from _functions(child, prefix)


def digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
