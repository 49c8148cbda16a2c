"""Global names of a program: found in the file they came from, in torch, or among what such names usually are."""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass, field

from fuzzer.engines.statement import tidy
from fuzzer.program import ALLOWED_IMPORTS
from fuzzer.seeds.clean import Cleaner
from fuzzer.seeds.dataflow import registers_with
from fuzzer.seeds.names import DEVICES, HOMES, USUAL, USUAL_IMPORTS, flag
from fuzzer.seeds.source import SourceFile, bound_names

_ROUNDS = 12


class CannotImport(Exception):
    """No program can be made of this test. ``reason`` is a class of reasons to count by, ``str()`` the details."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(detail)
        self.reason = reason


@dataclass
class Prelude:
    """Module-level text that a program needs besides its own functions."""

    imports: dict[str, str] = field(default_factory=dict)  # bound name → import statement
    nodes: dict[int, ast.stmt] = field(default_factory=dict)  # line in the source → definition
    usual: dict[str, str] = field(default_factory=dict)  # name → expression

    def text(self) -> str:
        lines = ["import torch", *sorted(set(self.imports.values()) - {"import torch"}, key=_import_order)]
        usual = [f"{name} = {value}" for name, value in sorted(self.usual.items())]
        blocks = ["\n".join(lines)] + (["\n".join(usual)] if usual else [])
        definitions = [tidy(self.nodes[line]) for line in sorted(self.nodes)]
        return "\n\n\n".join(["\n\n".join(blocks), *definitions])


class Resolver:
    """Finds what a program's text leaves unbound. ``members``: the test class's, reached by plain names."""

    def __init__(self, source: SourceFile, members: dict[str, ast.stmt], cleaner: Cleaner) -> None:
        self.source = source
        self.members = members
        self.cleaner = cleaner

    def resolve(self, own: str) -> Prelude:
        """The prelude for the text ``own``. Raises ``CannotImport``."""
        prelude = Prelude()
        for _round in range(_ROUNDS):
            names = unbound(prelude.text() + "\n\n" + own)
            if not names:
                return prelude
            for name in sorted(names):
                self._find(name, prelude)
        raise CannotImport("needs too much of its file", ", ".join(sorted(names)))

    def _find(self, name: str, prelude: Prelude) -> None:
        name = next((old for old, new in self.cleaner.names.items() if new == name), name)
        value = flag(name)
        if value is not None:
            prelude.usual[name] = repr(value)
        elif name in DEVICES:
            prelude.usual[name] = '"cpu"'
        elif name in self.source.imports:
            self._import(name, prelude)
        elif name in self.source.table:
            self._define(name, self.source.table[name], prelude)
        elif name in self.members:
            self._define(name, self.members[name], prelude)
        else:
            self._usual(name, prelude)

    def _usual(self, name: str, prelude: Prelude) -> None:
        if name in USUAL:
            prelude.usual[name] = USUAL[name]
        elif name in USUAL_IMPORTS:
            prelude.imports[name] = _import(USUAL_IMPORTS[name], "", name)
        elif name in HOMES:
            prelude.imports[name] = _import(HOMES[name], name, name)
        elif name in ("self", "cls"):
            raise CannotImport("uses the test class itself")
        else:
            raise CannotImport("a name that the file does not explain", name)

    def _import(self, name: str, prelude: Prelude) -> None:
        module, attribute = self.source.imports[name]
        if attribute in HOMES:
            prelude.imports[name] = _import(HOMES[attribute], attribute, name)
        elif module.split(".")[0] == "torchdynamo":
            full = ".".join(part for part in ("torch._dynamo" + module[len("torchdynamo") :], attribute) if part)
            prelude.imports[name] = f"import {full} as {name}"
        elif module.split(".")[0] not in ALLOWED_IMPORTS or module.startswith("torch.testing._internal"):
            if name in USUAL or name in USUAL_IMPORTS:
                self._usual(name, prelude)
                return
            where = "another file or package" if not module.startswith("torch.") else "torch's test helpers"
            raise CannotImport(f"needs {where}", f"{module}.{attribute}".rstrip("."))
        else:
            prelude.imports[name] = _import(module, attribute, name)

    def _define(self, name: str, node: ast.stmt, prelude: Prelude) -> None:
        if any(other in ("fn", "META", "build_inputs") for other in bound_names(node)) and not self.cleaner.names:
            raise CannotImport("a helper has a name of the contract", name)
        cleaned = self.cleaner.statement(node)
        if cleaned is None:
            raise CannotImport("a name that the file does not explain", name)
        if isinstance(cleaned, ast.FunctionDef):
            drop_self(cleaned)
        prelude.nodes[node.lineno] = cleaned
        for other in self.source.tree.body:  # @myop.register_fake, lib.impl(…)
            if registers_with(other) & set(bound_names(node)) and other.lineno not in prelude.nodes:
                prelude.nodes[other.lineno] = self.cleaner.clean(other)


def drop_self(function: ast.FunctionDef) -> None:
    """A method as a plain function."""
    arguments = function.args.args
    if arguments and arguments[0].arg in ("self", "cls"):
        arguments.pop(0)
    plain = [item for item in function.decorator_list if ast.unparse(item) not in ("staticmethod", "classmethod")]
    function.decorator_list = plain


def unbound(text: str) -> set[str]:
    """Global names that a module reads and never binds. Raises ``CannotImport`` where Python refuses the text."""
    try:
        table = symtable.symtable(text, "<program>", "exec")
    except SyntaxError as error:
        raise CannotImport("does not stand alone as Python", str(error.msg)) from None
    bound = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    bound |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_namespace()}
    read: set[str] = set()
    stack = [table]
    while stack:
        scope = stack.pop()
        top = scope.get_type() == "module"
        for symbol in scope.get_symbols():
            if symbol.is_global() and symbol.is_assigned() and not top:
                bound.add(symbol.get_name())
            if symbol.is_referenced() and (top or symbol.is_global()):
                read.add(symbol.get_name())
        stack.extend(scope.get_children())
    return read - bound - set(dir(builtins)) - {"__name__", "__file__", "__class__"}


def _import(module: str, attribute: str, name: str) -> str:
    if attribute:
        return f"from {module} import {attribute}" + (f" as {name}" if name != attribute else "")
    return f"import {module}" if name == module.split(".")[0] else f"import {module} as {name}"


def _import_order(line: str) -> tuple[bool, str]:
    return line.startswith("from "), line
