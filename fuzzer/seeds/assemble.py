"""One event of a test as a program in the contract: inputs apart from the function, everything it needs around it."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.engines.statement import RANDOM_CALLS, tidy
from fuzzer.engines.writer import WIDTH, render_meta
from fuzzer.program import Program, ProgramError
from fuzzer.seeds.clean import Cleaner
from fuzzer.seeds.dataflow import Flow
from fuzzer.seeds.events import Event, EventFinder
from fuzzer.seeds.names import dotted, last_part
from fuzzer.seeds.resolve import CannotImport, Resolver, drop_self
from fuzzer.seeds.source import SourceFile, read_names
from fuzzer.seeds.straighten import Line, Straightener

_RANDOM = RANDOM_CALLS - {"scaled_dot_product_attention", "manual_seed", "seed"}
#: Text that names no operators but torch's own.
_BUILT_IN = re.compile(r"(?:(?!torch\.ops\.(?!aten\b|prims\b|quantized\b)).)*", re.DOTALL)
_CHAIN = 12  # names that stand for one another


@dataclass
class Target:
    """The function under test: its definition, where its names are looked up, what it needs of the test."""

    function: ast.FunctionDef
    before: int
    name: str = "fn"  # as the test calls it
    extras: list[str] = field(default_factory=list)  # names that become inputs
    hoisted: list[int] = field(default_factory=list)  # lines for module level
    nested: list[int] = field(default_factory=list)  # definitions that see the inputs


class Assembler:
    """Programs of one straightened test."""

    def __init__(
        self, source: SourceFile, lines: Sequence[Line], members: dict[str, ast.stmt], s: Straightener
    ) -> None:
        self.source = source
        self.lines = lines
        self.members = members
        self.cleaner = Cleaner(source, members, s)
        self.flow = Flow(source, lines, self.cleaner)
        self.resolver = Resolver(source, members, self.cleaner)
        self.finder = EventFinder(source, lines)
        self.gradient = any(_differentiates(line.node) for line in lines)
        text = " ".join(ast.unparse(line.node) for line in lines)
        self.evaluates, self.stateful = (
            ".eval()" in text,
            any(w in text for w in ("BatchNorm", "Dropout", "InstanceNorm")),
        )

    def program(self, event: Event, second: Event | None, meta: dict[str, Any], source: str) -> Program:
        """The program of an event; ``second`` is a later call of the same callable.

        Raises:
            CannotImport: with the class of reasons.
        """
        target = self._target(event)
        self.cleaner.names = {} if target.name == "fn" else {"fn": "inner_fn"}  # ``fn`` is the program's own
        self._place(target)
        self._surround(target, event)
        extra_first = self._order(target, event)
        build = self._build("build_inputs", event, target, extra_first)
        builds = [build]
        if second is not None:
            other = self._build("build_inputs2", second, target, extra_first)
            if other.partition("\n")[2] != build.partition("\n")[2]:
                builds.append(other)
        hoisted = [tidy(node) for node in self._cleaned(sorted(set(target.hoisted)))]
        fn = tidy(target.function)
        own = "\n\n\n".join([*hoisted, *builds, fn])
        prelude = self.resolver.resolve(own)
        text = prelude.text()
        full = self._meta(event, target, meta, "\n".join([text, *hoisted, fn]), "\n".join(builds))
        head = "\n\n\n".join([text, *hoisted])
        definitions = any(line.startswith(("def ", "class ", "@")) for line in head.splitlines())
        whole = "\n\n\n".join([head + ("\n\n\n" if definitions else "\n\n") + render_meta(full), *builds, fn])
        try:
            text = "\n".join(line.rstrip() for line in whole.splitlines()) + "\n"
            compile(text, "<program>", "exec")  # what the parser lets pass: a stray continue, two equal parameters
            return Program.parse(text, source)
        except (ProgramError, SyntaxError) as error:
            raise CannotImport("outside the contract", str(error)) from None

    # -- the function ---------------------------------------------------------------------------------------------

    def _target(self, event: Event) -> Target:
        node, before = event.callable, event.index
        limit = event.defined
        for _ in range(_CHAIN):
            compiled = self.finder.compile_of(node)
            if isinstance(node, ast.Call) and compiled is not None:
                node = compiled.inner
                continue
            if isinstance(node, ast.Lambda):
                return Target(_of_lambda(node), before, "")
            if isinstance(node, ast.Attribute) and dotted(node.value) in ("self", "cls"):
                method = self.members.get(node.attr)
                if isinstance(method, ast.FunctionDef):
                    return Target(copy.deepcopy(method), before, method.name)
            if not isinstance(node, ast.Name):
                break
            index = self.flow.binding(node.id, limit)
            statement = self.lines[index].node if index is not None else self.source.table.get(node.id)
            if isinstance(statement, ast.FunctionDef):
                return Target(copy.deepcopy(statement), before, statement.name)
            if not isinstance(statement, ast.Assign) or not self._stands_for(statement.value):
                break
            node, limit = statement.value, index if index is not None else 0
        return Target(self._wrapper(node, event), before, "")

    def _stands_for(self, value: ast.expr) -> bool:
        return isinstance(value, (ast.Name, ast.Lambda)) or self.finder.compile_of(value) is not None

    def _wrapper(self, node: ast.expr, event: Event) -> ast.FunctionDef:
        """``def fn(a, b): return CALLABLE(a, b)`` for a module, a partial, an operator."""
        if event.whole is not None or any(isinstance(argument, ast.Starred) for argument in event.args):
            text = "def fn(*args):\n    return CALL(*args)"
        else:
            taken = read_names(node) | {"fn", "inner_fn", "torch"}
            names = list(_parameter_names(event.args, taken))
            keys = list(event.keywords)
            keys = [key if key not in taken and key not in names else f"{key}_" for key in keys]
            passed = [*names, *(f"{key}={name}" for key, name in zip(event.keywords, keys))]
            text = f"def fn({', '.join([*names, *keys])}):\n    return CALL({', '.join(passed)})"
        function = ast.parse(text).body[0]
        assert isinstance(function, ast.FunctionDef)
        statement = function.body[0]
        assert isinstance(statement, ast.Return) and isinstance(statement.value, ast.Call)
        statement.value.func = copy.deepcopy(node)
        return function

    def _place(self, target: Target) -> None:
        """Decide for every local name that the function reads: module level, nested, or an input."""
        if isinstance(target.function, ast.AsyncFunctionDef) or _is_generator(target.function):
            raise CannotImport("the compiled function is a generator")
        if "torch.ops." in (text := ast.unparse(target.function)) and not _BUILT_IN.fullmatch(text):
            target.hoisted += self.flow.libraries(target.before)
        target.function.decorator_list = [d for d in target.function.decorator_list if self.cleaner.matters(d)]
        names = sorted(read_names(target.function) - {target.name})
        done: set[str] = set()
        while names:
            name = names.pop(0)
            if name in done or not self.flow.is_local(name, target.before):
                continue
            done.add(name)
            lines = self.flow.plain(name, target.before)
            if lines is not None:
                target.hoisted += [line for line in lines if line not in target.hoisted]
                continue
            index = self.flow.binding(name, target.before)
            assert index is not None
            node = self.lines[index].node
            if isinstance(node, ast.FunctionDef) and "library" in " ".join(map(ast.unparse, node.decorator_list)):
                target.hoisted += [
                    line for line in self.flow.needed([name], target.before) if line not in target.hoisted
                ]
            elif isinstance(node, ast.FunctionDef):
                target.nested.append(index)
                names += sorted(self.flow.reads[index] - {name})
            elif isinstance(node, ast.ClassDef):
                target.hoisted += [
                    line for line in self.flow.needed([name], target.before) if line not in target.hoisted
                ]
            else:
                target.extras.append(name)

    def _surround(self, target: Target, event: Event) -> None:
        """Nested helpers, kept contexts and the framework's rewriting go into the function's body."""
        function = self.cleaner.clean(target.function)
        function = _renamed(function, target.name)
        function.decorator_list = [item for item in function.decorator_list if not _binds_class(item)]
        drop_self(function)
        function.body = [
            self._global(part, target) if isinstance(part, ast.Nonlocal) else part for part in function.body
        ]
        if event.frame.contexts:
            items = [ast.withitem(self.cleaner.clean(context), None) for context in event.frame.contexts]
            function.body = [ast.With(items, function.body, lineno=1)]
        function.body = [*self._cleaned(sorted(target.nested)), *function.body]
        target.function = ast.fix_missing_locations(function)

    def _global(self, node: ast.Nonlocal, target: Target) -> ast.stmt:
        """A variable of the test becomes one of the module."""
        if not set(node.names) <= self._hidden(target):
            raise CannotImport("changes variables of its test", ", ".join(node.names))
        return ast.copy_location(ast.Global(node.names), node)

    def _order(self, target: Target, event: Event) -> bool:
        """Add the extra inputs to the parameters; True where they come first."""
        arguments = target.function.args
        own = [argument.arg for argument in arguments.args]
        self._bind_keywords(target, event, own)
        if not target.extras:
            return False
        if any(name in own for name in target.extras):
            raise CannotImport("an input and a captured name are called the same")
        fixed = event.whole is None and not any(isinstance(item, ast.Starred) for item in event.args)
        first = not fixed or bool(arguments.vararg or arguments.kwonlyargs) or len(event.args) < len(own)
        added = [ast.arg(self.cleaner.names.get(name, name)) for name in target.extras]
        arguments.args = [*added, *arguments.args] if first else [*arguments.args, *added]
        if not first:
            arguments.defaults = []
        return first

    def _bind_keywords(self, target: Target, event: Event, own: list[str]) -> None:
        """Keyword arguments become positional: the contract has no others."""
        arguments = target.function.args
        wanted = [name for name in event.keywords if name not in own and f"{name}_" not in own]
        if event.loose and not any(argument.arg in wanted for argument in arguments.kwonlyargs):
            return
        if wanted and any(argument.arg in wanted for argument in arguments.kwonlyargs):
            given = [argument for argument in arguments.kwonlyargs if argument.arg in wanted]
            if len(given) != len(arguments.kwonlyargs) or arguments.vararg:
                raise CannotImport("keyword-only arguments")
            arguments.args += given
            arguments.kwonlyargs, arguments.kw_defaults, arguments.defaults = [], [], []
        elif wanted:
            raise CannotImport("keyword arguments that the function takes as **kwargs")

    # -- the inputs -----------------------------------------------------------------------------------------------

    def _build(self, name: str, event: Event, target: Target, extra_first: bool) -> str:
        elements, whole = self._elements(event, target)
        names = {part for item in [*elements, *([whole] if whole else [])] for part in read_names(item)}
        names |= set(target.extras)
        for argument in sorted(names):  # functions and classes among the inputs are shared, so that they stay equal
            index = self.flow.binding(argument, event.index)
            if index is not None:
                self._hoist_definition(index, event.index, target)
        for line in self.flow.needed(names, event.index, self._hidden(target)):
            self._hoist_definition(line, event.index, target)
        kept = self.flow.needed(names, event.index, self._hidden(target))
        body = self._cleaned([line for line in kept if line not in target.hoisted])
        items = [self.cleaner.clean(item) for item in elements]
        extras = [self.cleaner.clean(ast.Name(extra, ast.Load())) for extra in target.extras]
        if whole is not None:
            items = [ast.Starred(self.cleaner.clean(whole), ast.Load())]
            body, items = _inline_sequence(body, items)
        items = [*extras, *items] if extra_first else [*items, *extras]
        text = [f"def {name}():", "    torch.manual_seed(0)"]
        text += ["    " + line for node in body for line in tidy(node).splitlines()]
        text.append(f"    return {_tuple(items)}")
        return "\n".join(text)

    def _hidden(self, target: Target) -> set[str]:
        return {bound for line in target.hoisted for bound in self.flow.binds[line]}

    def _hoist_definition(self, index: int, before: int, target: Target) -> None:
        """Definitions and plain objects go to module level where they may: they are then the same in every run, and
        two that are not the same never compare equal.
        """
        node = self.lines[index].node
        name = node.name if isinstance(node, (ast.FunctionDef, ast.ClassDef)) else ""
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and self.flow.makes_object(node.value):
            name = ast.unparse(node.targets[0])
        if name:
            lines = self.flow.plain(name, before) or []
            target.hoisted += [line for line in lines if line not in target.hoisted]

    def _elements(self, event: Event, target: Target) -> tuple[list[ast.expr], ast.expr | None]:
        """The inputs by position, keyword arguments in their places."""
        elements = list(event.args)
        if not event.keywords or event.whole is not None:
            if event.keywords:
                raise CannotImport("keyword arguments beside a sequence of inputs")
            return elements, event.whole
        arguments = target.function.args
        own = [argument.arg for argument in arguments.args if argument.arg not in target.extras]
        defaults = dict(zip(reversed([a.arg for a in arguments.args]), reversed(arguments.defaults)))
        keywords = {name if name in own else f"{name}_": value for name, value in event.keywords.items()}
        if event.loose:
            keywords = {name: value for name, value in keywords.items() if name in own}
        while keywords and len(elements) < len(own):
            name = own[len(elements)]
            value = keywords.pop(name, None) or defaults.get(name)
            if value is None:
                raise CannotImport("keyword arguments that leave a gap", name)
            elements.append(value)
        return elements, None

    def _cleaned(self, lines: Sequence[int]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for index in lines:
            node = self.cleaner.statement(self.lines[index].node)
            if node is None:
                continue
            if self.lines[index].frame.no_grad and isinstance(node, (ast.Expr, ast.AugAssign)):
                inside = ast.parse("with torch.no_grad():\n    pass").body[0]
                assert isinstance(inside, ast.With)
                inside.body = [node]
                node = ast.fix_missing_locations(inside)
            found.append(node)
        return found

    # -- META -----------------------------------------------------------------------------------------------------

    def _meta(self, event: Event, target: Target, given: dict[str, Any], code: str, build: str) -> dict[str, Any]:
        meta: dict[str, Any] = {"mode": "forward", **given}
        settings = dict(event.settings)
        differentiable = "requires_grad" in build or "Parameter(" in build or bool(target.extras)
        if (event.gradient or self.gradient) and differentiable and not event.frame.no_grad:
            meta["mode"] = "backward"
        elif self.stateful and target.extras and not self.evaluates and not event.frame.no_grad:
            meta["mode"] = "backward"  # the one mode that leaves a module in the state in which it was made
        elif settings.pop("dynamic", None):
            meta["mode"] = "dynamic"
        if event.frame.no_grad:
            meta["no_grad"] = True
        if settings:
            meta["compile"] = settings
        if any(last_part(call.func) in _RANDOM for call in _calls(code)) or "Dropout" in build:
            meta["random"] = True
        for key, changes in event.frame.configs.items():
            meta[key] = dict(changes)
        return meta


def _calls(text: str) -> Iterator[ast.Call]:
    yield from (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call))


def _differentiates(node: ast.stmt) -> bool:
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return False
    names = {last_part(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
    return bool(names & {"backward", "run_fw_bw_and_get_code"}) or "autograd.grad(" in ast.unparse(node)


def _of_lambda(node: ast.Lambda) -> ast.FunctionDef:
    function = ast.parse("def fn(): pass").body[0]
    assert isinstance(function, ast.FunctionDef)
    function.args = copy.deepcopy(node.args)
    function.body = [ast.Return(copy.deepcopy(node.body))]
    return ast.fix_missing_locations(function)


def _renamed(function: ast.FunctionDef, name: str) -> ast.FunctionDef:
    """The function called ``fn``, its calls of itself included."""
    function.name = "fn"
    for part in ast.walk(function):
        if isinstance(part, ast.Name) and part.id == name:
            part.id = "fn"
    return function


def _is_generator(function: ast.FunctionDef) -> bool:
    stack: list[ast.AST] = list(function.body)
    while stack:
        node = stack.pop()
        if isinstance(node, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(node, (ast.FunctionDef, ast.Lambda, ast.ClassDef)):
            stack.extend(ast.iter_child_nodes(node))
    return False


def _binds_class(decorator: ast.expr) -> bool:
    return ast.unparse(decorator) in ("staticmethod", "classmethod", "property")


def _parameter_names(args: Sequence[ast.expr], taken: set[str]) -> Iterator[str]:
    """The arguments' own names where they have some, else a, b, c, …"""
    used = set(taken)
    letters = (letter for letter in "abcdefghijklmnopqrstuvwxyz")
    for argument in args:
        name = argument.id if isinstance(argument, ast.Name) else ""
        if not name or name in used:
            name = next((letter for letter in letters if letter not in used), f"a{len(used)}")
        used.add(name)
        yield name


def _inline_sequence(body: list[ast.stmt], items: list[ast.expr]) -> tuple[list[ast.stmt], list[ast.expr]]:
    """``inputs = [a, b]`` followed by its only use: the elements themselves."""
    last = body[-1] if body else None
    (star,) = items
    assert isinstance(star, ast.Starred)
    if not isinstance(last, ast.Assign) or not isinstance(last.value, (ast.Tuple, ast.List)):
        return body, items
    name = ast.unparse(star.value)
    if len(last.targets) > 1 or ast.unparse(last.targets[0]) != name:
        return body, items
    return body[:-1], list(last.value.elts)


def _tuple(items: Sequence[ast.expr]) -> str:
    texts = [tidy(item) for item in items]
    short = f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"
    if len(short) <= WIDTH - 11:
        return short
    return "(\n" + "".join(f"        {text},\n" for text in texts) + "    )"
