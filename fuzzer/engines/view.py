"""A program as data: prelude, inputs, statements, results.

A view is derived from the text and rendered back to it; it is immutable, so a mutation builds a new one with
``dataclasses.replace``. Everything that has no place of its own (imports, helpers, classes) is kept verbatim.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from fuzzer.engines.block import Block, Returns, flatten_block, fresh, name_inputs
from fuzzer.engines.statement import Facts, Statement, segment, tidy
from fuzzer.engines.writer import render_function, render_program
from fuzzer.exits import UserError
from fuzzer.program import Program

CONTRACT = ("META", "build_inputs", "build_inputs2", "fn")


class ViewError(UserError):
    """The program cannot be viewed: ``fn`` or ``build_inputs`` is not a plain function."""


@dataclass(frozen=True)
class ProgramView:
    """``build``/``build_returns`` make the inputs, ``body``/``returns`` are ``fn``.

    ``params`` are fn's plain positional parameters; ``signature`` is the text between its parentheses where it
    is more than that (defaults, ``*args``), else None; mutations that add parameters need it None.
    ``prelude`` precedes the functions, ``tail`` (text that uses them, such as a ``__main__`` part) follows.
    """

    prelude: str
    meta: dict[str, Any]
    build: tuple[Statement, ...]
    build_returns: Returns
    params: tuple[str, ...]
    body: tuple[Statement, ...]
    returns: Returns
    build2: Block | None = None
    signature: str | None = None
    decorators: tuple[str, ...] = ()
    tail: str = ""
    source: str = field(default="<program>", compare=False)
    origin: str = field(default="", compare=False)  # id of the program that was viewed

    @classmethod
    def of(cls, program: Program) -> ProgramView:
        """Read the text. Raises ``ViewError`` when ``fn`` or ``build_inputs`` is not a plain def."""
        tree = ast.parse(program.text)
        lines = program.text.splitlines()
        functions = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name in CONTRACT}
        for name in ("fn", "build_inputs"):
            if name not in functions:
                raise ViewError(f"{program.source}: `{name}` is not a plain function, so there is nothing to mutate")
        prelude, tail = _module_text(tree, lines)
        fn = functions["fn"]
        body, returns = _split(fn, lines)
        build = _block(functions["build_inputs"], lines)
        second = functions.get("build_inputs2")
        plain = tuple(argument.arg for argument in fn.args.args)
        text = tidy(fn.args)
        return cls(
            prelude=prelude,
            meta=dict(program.meta),
            build=build.body,
            build_returns=build.returns,
            build2=_block(second, lines) if second else None,
            params=plain,
            signature=None if text == ", ".join(plain) else text,
            decorators=tuple(tidy(node) for node in fn.decorator_list),
            body=body,
            returns=returns,
            tail=tail,
            source=program.source,
            origin=program.id,
        )

    def to_text(self) -> str:
        """The program's text, META as it stands. Viewing it and rendering again gives the same text."""
        signature = ", ".join(self.params) if self.signature is None else self.signature
        functions = [render_function("build_inputs", "", self.build, self.build_returns)]
        if self.build2:
            functions.append(render_function("build_inputs2", "", self.build2.body, self.build2.returns))
        decorators = "".join(f"@{decorator}\n" for decorator in self.decorators)
        functions.append(decorators + render_function("fn", signature, self.body, self.returns))
        return render_program(self.prelude, self.meta, functions, self.tail)

    def to_program(self, parents: Sequence[str] = (), engine: str = "") -> Program:
        """The program, its META naming its parents' ids and its engine where given.

        Raises:
            ProgramError: the view spells something outside the contract.
        """
        meta = dict(self.meta)
        if parents:
            meta["parents"] = list(parents)
        if engine:
            meta["engine"] = engine
        return Program.parse(dataclasses.replace(self, meta=meta).to_text())

    def with_meta(self, **changes: Any) -> ProgramView:
        """The same program with other META entries."""
        return dataclasses.replace(self, meta={**self.meta, **changes})

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names that ``build_inputs`` returns, by position; () where it returns anything but names."""
        if self.build_returns.kind != "tuple" or not all(t.isidentifier() for t in self.build_returns.items):
            return ()
        return self.build_returns.items

    @property
    def mode(self) -> str:
        return str(self.meta.get("mode", "forward"))

    def used_names(self) -> frozenset[str]:
        """Every identifier anywhere in the program."""
        texts = [self.prelude, self.tail, *(s.text for s in (*self.build, *self.body))]
        texts += [f"({item})" for r in (self.returns, self.build_returns) for item in (*r.items, *r.keys)]
        if self.build2:
            texts += [s.text for s in self.build2.body] + [f"({item})" for item in self.build2.returns.items]
        names = {*self.params, *CONTRACT}
        for text in texts:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Name):
                    names.add(node.id)
                elif isinstance(node, ast.arg):
                    names.add(node.arg)
                elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                    names.add(node.name)
                elif isinstance(node, ast.alias):
                    names.add((node.asname or node.name).split(".")[0])
        if self.signature:
            names |= {n.arg for n in ast.walk(ast.parse(f"lambda {self.signature}: 0")) if isinstance(n, ast.arg)}
        return frozenset(names)

    def fresh_names(self) -> Iterator[str]:
        """Unused short names: a, b, …, z, then a1, b1, …"""
        return fresh(self.used_names())

    def fresh_name(self) -> str:
        return next(self.fresh_names())

    def bound_before(self, index: int) -> tuple[str, ...]:
        """fn's parameters and the names bound by ``body[:index]``, in order of first binding."""
        names = dict.fromkeys(self.params)
        for statement in self.body[:index]:
            names.update(dict.fromkeys(statement.targets))
        return tuple(names)

    def locals(self) -> frozenset[str]:
        return frozenset(self.bound_before(len(self.body)))

    def insert(self, index: int, *texts: str) -> ProgramView:
        """New statements before ``body[index]``."""
        new = tuple(Statement.of(text) for text in texts)
        return dataclasses.replace(self, body=self.body[:index] + new + self.body[index:])

    def with_statement(self, index: int, *new: Statement) -> ProgramView:
        """``body[index]`` replaced."""
        return dataclasses.replace(self, body=self.body[:index] + new + self.body[index + 1 :])

    def rename(self, mapping: dict[str, str]) -> ProgramView:
        """Names of ``fn`` (parameters too) replaced in fn alone; the new ones must be fresh."""
        if self.signature:
            raise ViewError(f"{self.source}: fn's signature is not plain, its names cannot be replaced")
        return dataclasses.replace(
            self,
            params=tuple(mapping.get(name, name) for name in self.params),
            body=tuple(statement.renamed(mapping) for statement in self.body),
            returns=self.returns.map(lambda text: rename_text(text, mapping)),
        )

    def rename_build(self, mapping: dict[str, str]) -> ProgramView:
        """Names of ``build_inputs`` and ``build_inputs2`` replaced."""
        return self.with_blocks(
            lambda block: Block(
                tuple(statement.renamed(mapping) for statement in block.body),
                block.returns.map(lambda text: rename_text(text, mapping)),
            )
        )

    def with_blocks(self, change: Any) -> ProgramView:
        """Both input builders replaced by ``change(block)``."""
        first = change(Block(self.build, self.build_returns))
        second = change(self.build2) if self.build2 else None
        return dataclasses.replace(self, build=first.body, build_returns=first.returns, build2=second)

    def components(self) -> dict[str, int]:
        """Names that may share storage have equal numbers: everything one statement touches is related."""
        return components(self.body, self.params)

    def live(self) -> tuple[bool, ...]:
        """Per statement of ``body``: may it matter to the results, the inputs after the call, or the generator?"""
        group = self.components()
        visible = {group[name] for name in self.params if name in group}
        needed = set(self.returns.reads)
        flags: list[bool] = []
        for statement in reversed(self.body):
            touched = {group[name] for name in statement.writes if name in group}
            seen = visible | {group[name] for name in needed if name in group}
            alive = bool(needed & set(statement.targets)) or bool(touched & seen)
            alive = alive or (not statement.pure and not statement.writes) or bool(statement.writes - set(group))
            if alive:
                if statement.simple:
                    needed -= set(statement.targets)
                needed |= statement.reads
            flags.append(alive)
        return tuple(reversed(flags))

    def dead(self) -> tuple[int, ...]:
        """Indices of statements that nothing observes."""
        return tuple(index for index, alive in enumerate(self.live()) if not alive)

    def normalise(self) -> ProgramView:
        """A-normal form: one call a statement, inputs and results named; control flow is left whole.

        A fixpoint: normalising twice changes nothing more.
        """
        names = self.fresh_names()
        body, returns = flatten_block(self.body, self.returns, names)
        view = dataclasses.replace(self, body=body, returns=returns)
        return view.with_blocks(lambda block: name_inputs(block, self.params))


def rename_text(text: str, mapping: dict[str, str]) -> str:
    """An expression with identifiers replaced."""
    return Statement.of(f"({text})").renamed(mapping).text[1:-1]


def components(body: Sequence[Statement], params: Sequence[str]) -> dict[str, int]:
    """Union–find over the local names that each statement mentions; see ``ProgramView.components``."""
    local = {*params, *(name for statement in body for name in statement.targets)}
    parent = {name: name for name in local}

    def root(name: str) -> str:
        while parent[name] != name:
            name = parent[name]
        return name

    for statement in body:
        related = sorted((set(statement.targets) | statement.reads) & local)
        for other in related[1:]:
            parent[root(other)] = root(related[0])
    numbers = {name: index for index, name in enumerate(sorted(local))}
    return {name: numbers[root(name)] for name in local}


def _module_text(tree: ast.Module, lines: list[str]) -> tuple[str, str]:
    """(prelude, tail): module-level text outside the contract, with the comments above each statement."""
    prelude: list[str] = []
    tail: list[str] = []
    previous = 0
    for node in tree.body:
        first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
        assert node.end_lineno is not None
        name = getattr(node, "name", "")
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
        if name not in CONTRACT:
            text = segment(lines, node)
            comments = [line for line in lines[previous : first - 1] if line.lstrip().startswith("#")]
            facts = Facts()
            facts.visit(node)
            late = bool(facts.reads & set(CONTRACT)) and not isinstance(node, (ast.FunctionDef, ast.ClassDef))
            (tail if late else prelude).append("\n".join([*comments, text]))
        previous = node.end_lineno
    return _join(prelude), _join(tail)


def _join(parts: list[str]) -> str:
    """Module-level statements: definitions stand apart by two blank lines, groups of others by none."""
    text = ""
    for index, part in enumerate(parts):
        big = "\n" in part or (index and "\n" in parts[index - 1])
        imports = [p.startswith(("import ", "from ")) for p in (parts[index - 1], part)]
        gap = "\n\n\n" if big else "\n" if imports[0] == imports[1] else "\n\n"
        text += (gap if index else "") + part
    return text


def _split(function: ast.FunctionDef, lines: list[str]) -> tuple[tuple[Statement, ...], Returns]:
    nodes = list(function.body)
    if ast.get_docstring(function) is not None:
        nodes = nodes[1:]
    returns = Returns("none")
    if nodes and isinstance(nodes[-1], ast.Return):
        last = nodes.pop()
        assert isinstance(last, ast.Return)
        if last.value is not None:
            returns = _returns(last.value, lines)
    return tuple(Statement.of(segment(lines, node)) for node in nodes), returns


def _returns(value: ast.expr, lines: list[str]) -> Returns:
    def text(node: ast.expr) -> str:
        if node.lineno == node.end_lineno:
            return lines[node.lineno - 1].encode()[node.col_offset : node.end_col_offset].decode()
        return tidy(node)

    if isinstance(value, (ast.Tuple, ast.List)) and not any(isinstance(e, ast.Starred) for e in value.elts):
        kind: Literal["tuple", "list"] = "tuple" if isinstance(value, ast.Tuple) else "list"
        return Returns(kind, tuple(text(element) for element in value.elts))
    if isinstance(value, ast.Dict) and all(key is not None for key in value.keys):
        keys = tuple(text(key) for key in value.keys if key is not None)
        return Returns("dict", tuple(text(element) for element in value.values), keys)
    return Returns("single", (text(value),))


def _block(function: ast.FunctionDef, lines: list[str]) -> Block:
    body, returns = _split(function, lines)
    return Block(body, returns)
