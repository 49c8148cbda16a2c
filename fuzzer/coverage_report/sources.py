"""The compiler's Python sources as a reader of coverage needs them: executable lines, functions, what is registered."""

from __future__ import annotations

import ast
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

from fuzzer.coverage_report.target_files import TargetFiles

#: The packages that the harness measures (the same as in ``harness.coverage.python_lines``).
COMPILER_PACKAGES = (
    "torch._dynamo", "torch._inductor", "torch._functorch", "torch.fx", "torch._decomp", "torch._refs", "torch._prims",
    "torch._prims_common", "torch._subclasses", "torch._higher_order_ops", "torch._meta_registrations",
    "torch._guards", "torch.utils._sympy",
)  # fmt: skip

_OPTIMIZED = 0x1  # CO_OPTIMIZED: the code of a function, not of a module or class

#: Decorators that enter a function in one of the compiler's tables, by the end of the decorator's name.
_REGISTRIES = {
    "register_lowering": "lowering",
    "register_decomposition": "decomposition",
    "register_graph_pattern": "fx pass",
    "register_lowering_pattern": "fx pass",
}


@dataclass(frozen=True)
class Function:
    """One function. ``lines`` are the executable lines of its body, its ``def`` line apart unless that is all of it;
    lambdas and comprehensions belong to the function around them."""

    name: str  # "TritonKernel.codegen_body"
    first: int  # line of its first decorator, or of the ``def``
    lines: frozenset[int]


@dataclass(frozen=True)
class Source:
    """One file. ``executable`` includes lines that run on import."""

    file: str  # "torch/_inductor/ir.py"
    executable: frozenset[int]
    functions: tuple[Function, ...]

    @property
    def body_lines(self) -> int:
        """Executable lines inside functions."""
        return len(frozenset().union(*(function.lines for function in self.functions)))


@dataclass(frozen=True)
class Registration:
    """A function that a decorator enters in a table of the compiler. ``names`` are as the source spells them."""

    kind: str  # lowering | decomposition | fx pass
    names: tuple[str, ...]
    file: str
    function: str
    first: int


def read_sources(files: TargetFiles) -> dict[str, Source]:
    """Every source file of the compiler's packages, by name. Files that this interpreter cannot compile are absent."""
    found = {}
    for path in _paths(files):
        source = read_source(path, path.relative_to(files.site_packages).as_posix())
        if source is not None:
            found[source.file] = source
    return found


def _paths(files: TargetFiles) -> Iterator[Path]:
    for package in COMPILER_PACKAGES:
        place = files.site_packages / Path(*package.split("."))
        if place.is_dir():
            for folder, _, names in os.walk(place):
                yield from (Path(folder, name) for name in sorted(names) if name.endswith(".py"))
        elif place.with_suffix(".py").is_file():
            yield place.with_suffix(".py")


def read_source(path: Path, file: str) -> Source | None:
    """Lines and functions of one file; None where it does not compile (a template, or of a newer Python).

    Nothing of it runs. Cached bytecode is used where it fits this interpreter, and none is written.
    """
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    try:
        module = SourceFileLoader("covered", str(path)).get_code("covered")
    except (OSError, SyntaxError, ValueError, RecursionError):
        return None
    finally:
        sys.dont_write_bytecode = writes
    if module is None:
        return None
    functions: dict[tuple[str, int], set[int]] = {}
    everything: set[int] = set()
    _collect(module, "", None, functions, everything)
    listed = [
        Function(name, first, frozenset(lines - {first} or {first})) for (name, first), lines in functions.items()
    ]
    return Source(file, frozenset(everything), tuple(sorted(listed, key=lambda item: (item.first, item.name))))


def _collect(
    code: CodeType,
    outer: str,
    owner: tuple[str, int] | None,
    functions: dict[tuple[str, int], set[int]],
    everything: set[int],
) -> None:
    lines = {line for _, _, line in code.co_lines() if line}
    everything |= lines
    if code.co_flags & _OPTIMIZED and not code.co_name.startswith("<"):
        owner = (f"{outer}{code.co_name}", code.co_firstlineno)
        # The `def` line of a decorated function follows its decorators: no line of the body comes before the next.
        functions.setdefault(owner, set()).update(lines)
        inner = f"{outer}{code.co_name}.<locals>."
    elif code.co_name.startswith("<"):
        inner = outer
        if owner is not None and code.co_flags & _OPTIMIZED:
            functions[owner] |= lines
    else:
        inner, owner = f"{outer}{code.co_name}.", None
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _collect(constant, inner, owner, functions, everything)


def read_registrations(files: TargetFiles) -> list[Registration]:
    """What the sources enter in the tables of lowerings, decompositions and graph passes by decorators.

    Tables are also filled by calls (pointwise lowerings, for example): those are not seen here.
    """
    found: list[Registration] = []
    words = [name.encode() for name in _REGISTRIES]
    for path in _paths(files):
        data = path.read_bytes()
        if any(word in data for word in words):
            try:
                tree = ast.parse(data)
            except (SyntaxError, ValueError, RecursionError):
                continue
            found += _registrations(tree, path.relative_to(files.site_packages).as_posix())
    return found


def _registrations(tree: ast.Module, file: str) -> Iterator[Registration]:
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for decorator in node.decorator_list:
            if not isinstance(decorator, ast.Call):
                continue
            kind = _REGISTRIES.get(ast.unparse(decorator.func).rpartition(".")[2])
            if kind:
                first = min(item.lineno for item in node.decorator_list)
                yield Registration(kind, _registered(kind, decorator, node.name), file, node.name, first)


def _registered(kind: str, decorator: ast.Call, function: str) -> tuple[str, ...]:
    if kind == "fx pass" or not decorator.args:
        return (function,)
    what = decorator.args[0]
    items = what.elts if isinstance(what, (ast.List, ast.Tuple)) else [what]
    return tuple(" ".join(ast.unparse(item).split())[:80] for item in items)
