"""Compiled calls on a straight line: which callable, which inputs, in which surroundings."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzer.seeds.names import COMPARERS, COMPILERS, ROOTS, TRACERS, dotted, last_part
from fuzzer.seeds.settings import Frame, compile_settings
from fuzzer.seeds.source import SourceFile
from fuzzer.seeds.straighten import Line

#: Functions that take a compiled callable and do not run it.
_ASKING = ("same", "isinstance", "type", "len", "assertTrue", "deepcopy")


@dataclass(frozen=True)
class Compiled:
    """A compiled callable: what was compiled, with which arguments. ``index``: the line where that was."""

    inner: ast.expr
    settings: dict[str, Any]
    index: int


@dataclass(frozen=True)
class Event:
    """One call worth a program. ``args`` may hold starred expressions; ``whole`` is a sequence of all arguments.

    ``rank`` 0: compiled or compared; 1: traced; 2: a plain call of something defined here. ``index`` is the line of the
    call, ``defined`` the line up to which the callable is looked up.
    """

    callable: ast.expr
    args: tuple[ast.expr, ...]
    keywords: dict[str, ast.expr]
    index: int
    defined: int
    frame: Frame
    rank: int = 0
    whole: ast.expr | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    gradient: bool = False
    group: str = ""  # equal for calls of one compiled callable
    loose: bool = False  # called through a helper: keywords may be the helper's own


class EventFinder:
    """Goes along the lines once, remembering what is compiled and what is defined."""

    def __init__(self, source: SourceFile, lines: Sequence[Line]) -> None:
        self.source = source
        self.lines = lines
        self.compiled: dict[str, Compiled] = {}
        self.callables: set[str] = set()  # local functions, modules, lambdas
        self.index = 0

    def run(self) -> list[Event]:
        """All events of the best rank that occurs, in order."""
        found: list[Event] = []
        for index, line in enumerate(self.lines):
            self.index, node = index, line.node
            if isinstance(node, ast.FunctionDef):
                self._define(node)
                continue
            if isinstance(node, ast.ClassDef):
                continue
            for call in reversed([part for part in ast.walk(node) if isinstance(part, ast.Call)]):
                event = self._event(call, line.frame)
                if event is not None:
                    found.append(event)
            self._note(node)
        best = min((event.rank for event in found), default=0)
        return [event for event in found if event.rank == best]

    def _define(self, node: ast.FunctionDef) -> None:
        self.compiled.pop(node.name, None)
        self.callables.add(node.name)
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            if self._compiler(call.func if call else decorator):
                name = ast.Name(node.name, ast.Load())
                self.compiled[node.name] = Compiled(name, _settings(call), self.index + 1)

    def _note(self, node: ast.stmt) -> None:
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            func = node.value.func  # model.compile(): in place
            owner = func.value if isinstance(func, ast.Attribute) and func.attr == "compile" else None
            if isinstance(owner, ast.Name) and owner.id not in ("torch", "re", *self.source.imports):
                self.compiled[owner.id] = Compiled(owner, _settings(node.value), self.index)
            return
        if not isinstance(node, ast.Assign) or len(node.targets) != 1 or not isinstance(node.targets[0], ast.Name):
            return
        name = node.targets[0].id
        compiled = self.compile_of(node.value)
        self.compiled.pop(name, None)
        if compiled is not None and dotted(compiled.inner) != name:
            self.compiled[name] = compiled
        elif compiled is not None:  # model = torch.compile(model): the name means the same callable before and after
            self.compiled[name] = replace(compiled, index=self.index)
        if isinstance(node.value, (ast.Lambda, ast.Call)):
            self.callables.add(name)

    def _compiler(self, node: ast.expr) -> bool:
        full = self.source.full_name(node)
        return full.split(".")[-1] in COMPILERS and full.split(".")[0] in ROOTS

    def compile_of(self, node: ast.expr) -> Compiled | None:
        """What an expression compiled, or None."""
        if isinstance(node, ast.Name):
            return self.compiled.get(node.id)
        if not isinstance(node, ast.Call):
            return None
        if isinstance(node.func, ast.Call) and self._compiler(node.func.func) and node.args:
            if node.func.args and last_part(node.func.func) == "compile":
                return None  # torch.compile(f)(x): a call of what is compiled
            return Compiled(node.args[0], _settings(node.func), self.index)
        if self._compiler(node.func) and node.args and last_part(node.func) == "compile":
            nested = self.compile_of(node.args[0])
            return nested or Compiled(node.args[0], _settings(node), self.index)
        return None

    # -- events -----------------------------------------------------------------------------------------------

    def _event(self, call: ast.Call, frame: Frame) -> Event | None:
        name = last_part(call.func)
        if name in COMPARERS:
            return self._compared(call, frame)
        if name == "standard_test":
            return self._standard(call, frame)
        compiled = self.compile_of(call.func)
        if compiled is not None:
            return self._called(compiled, call.args, call.keywords, frame)
        passed = call.args[1:] if call.args and dotted(call.args[0]) == "self" else call.args
        first = self.compile_of(passed[0]) if passed else None
        runs = not self._compiler(call.func) and not isinstance(call.func, ast.Call) and name not in _ASKING
        if first is not None and runs:
            return replace(self._called(first, passed[1:], call.keywords, frame), loose=True)
        return self._lesser(call, name, frame)

    def _compared(self, call: ast.Call, frame: Frame) -> Event | None:
        args = list(call.args)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        if args and dotted(args[0]) == "self":
            args.pop(0)
        model = args.pop(0) if args else keywords.get("model")
        whole = args.pop(0) if args else keywords.get("example_inputs", ast.Tuple([], ast.Load()))
        extra = args.pop(0) if args else keywords.get("kwargs")
        if model is None:
            return None
        compiled = self.compile_of(model)
        gradient = ast.unparse(keywords["check_gradient"]) == "True" if "check_gradient" in keywords else False
        event = Event(
            callable=compiled.inner if compiled else model,
            args=(),
            keywords=_named(extra),
            index=self.index,
            defined=compiled.index if compiled else self.index,
            frame=frame,
            whole=whole,
            settings=compiled.settings if compiled else {},
            gradient=gradient,
        )
        return _unpacked(event)

    def _standard(self, call: ast.Call, frame: Frame) -> Event | None:
        """torchdynamo's ``standard_test(self, fn, nargs)``: random inputs of ten by ten."""
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        args = [argument for argument in call.args if dotted(argument) != "self"]
        callable_ = args[0] if args else keywords.get("fn")
        count = args[1] if len(args) > 1 else keywords.get("nargs")
        if callable_ is None or not isinstance(count, ast.Constant) or not isinstance(count.value, int):
            return None
        return Event(callable_, random_inputs(count.value), {}, self.index, self.index, frame)

    def _called(
        self, compiled: Compiled, args: Sequence[ast.expr], keywords: Sequence[ast.keyword], frame: Frame
    ) -> Event:
        named = {keyword.arg: keyword.value for keyword in keywords if keyword.arg}
        event = Event(
            callable=compiled.inner,
            args=tuple(args),
            keywords=named,
            index=self.index,
            defined=compiled.index,
            frame=frame,
            settings=compiled.settings,
            group=f"{ast.unparse(compiled.inner)}@{compiled.index}",
        )
        if len(args) == 1 and isinstance(args[0], ast.Starred):
            return _unpacked(replace(event, whole=args[0].value, args=()))
        return event

    def _lesser(self, call: ast.Call, name: str, frame: Frame) -> Event | None:
        """Traced functions, calls under ``with torchdynamo.optimize():``, and plain calls of what is defined here."""
        plain = Event(call.func, tuple(call.args), {}, self.index, self.index, frame)
        keywords = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg}
        if isinstance(call.func, ast.Call) and last_part(call.func.func) == "make_fx" and call.func.args:
            return replace(plain, callable=call.func.args[0], rank=1)
        root = self.source.full_name(call.func).split(".")[0]
        if name in TRACERS and root in ROOTS and len(call.args) >= 2:
            inputs = tuple(call.args[1:])
            event = replace(plain, callable=call.args[0], args=inputs, rank=1)
            if self.source.full_name(call.func).startswith("torch.") and "_dynamo" not in ast.unparse(call.func):
                event = _unpacked(replace(event, args=(), whole=call.args[1]))
            return event
        known = isinstance(call.func, ast.Name) and (
            call.func.id in self.callables or isinstance(self.source.table.get(call.func.id), ast.FunctionDef)
        )
        if known and call.args:
            event = replace(plain, keywords=keywords, rank=0 if frame.compiled else 2)
            if frame.compiled is not None:
                return replace(event, settings=_settings(frame.compiled), group=f"{ast.unparse(call.func)}@")
            return event
        return None


def _settings(call: ast.Call | None) -> dict[str, Any]:
    return compile_settings(call.keywords) if call is not None else {}


def _named(node: ast.expr | None) -> dict[str, ast.expr]:
    """A literal dictionary with text keys, as keywords."""
    if not isinstance(node, ast.Dict):
        return {}
    return {str(key.value): value for key, value in zip(node.keys, node.values) if isinstance(key, ast.Constant)}


def _unpacked(event: Event) -> Event:
    """``whole`` taken apart where it is a literal sequence."""
    whole = event.whole
    if isinstance(whole, (ast.Tuple, ast.List)):
        return replace(event, args=tuple(whole.elts), whole=None)
    return event


def random_inputs(count: int) -> tuple[ast.expr, ...]:
    """``count`` inputs of a size that most functions of two-dimensional data accept."""
    return tuple(ast.parse("torch.randn(10, 10)", mode="eval").body for _ in range(count))


def parameters_of(function: ast.FunctionDef) -> Iterator[str]:
    """Positional parameters without a default."""
    arguments = [*function.args.posonlyargs, *function.args.args]
    needed = len(arguments) - len(function.args.defaults)
    yield from (argument.arg for argument in arguments[:needed] if argument.arg not in ("self", "cls"))
