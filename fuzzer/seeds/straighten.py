"""A test's body as a straight line: branches decided, one value of each loop, helpers that compile put in place.

What contains no compiled call is left whole: only the way to the compiled calls is straightened.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from fuzzer.seeds.fold import UNKNOWN, Folder
from fuzzer.seeds.names import COMPARERS, COMPILERS, ROOTS, TRACERS, dotted, last_part
from fuzzer.seeds.settings import Frame
from fuzzer.seeds.source import SourceFile, bound_names

_DEPTH = 4  # helpers inside helpers


class Skipped(Exception):
    """The test leaves itself out on a CPU; ``str()`` is the reason in its own words."""


class _Left(Exception):
    """``return``, ``continue``, ``break``: the rest of the block does not run."""

    def __init__(self, value: ast.expr | None = None) -> None:
        self.value = value


@dataclass(frozen=True)
class Line:
    """One statement of the straight line, and what surrounds it."""

    node: ast.stmt
    frame: Frame


class Straightener:
    """Straightens one variant of one test. ``pick`` says which value of every loop and parameter is taken (modulo)."""

    def __init__(self, source: SourceFile, members: dict[str, ast.stmt], pick: int) -> None:
        self.source = source
        self.members = members
        self.pick = pick
        self.lines: list[Line] = []
        self.longest = 1  # most values that a loop or parameter offered
        self.assigned: dict[str, ast.expr] = {}
        self.defined: dict[str, ast.FunctionDef] = {}  # local functions
        self.functions: dict[str, ast.FunctionDef] = {}  # those of them that compile
        self.compiled: set[str] = set()
        self.fold = Folder(source, self.assigned)

    def run(self, body: Sequence[ast.stmt], frame: Frame) -> list[Line]:
        """The whole test. Raises ``Skipped``."""
        try:
            self._block(body, frame, _DEPTH)
        except _Left:
            pass
        return self.lines

    def choose(self, items: Sequence[ast.expr]) -> ast.expr:
        self.longest = max(self.longest, len(items))
        return copy.deepcopy(items[self.pick % len(items)])

    def bind(self, target: ast.expr, value: ast.expr, frame: Frame) -> None:
        """``target = value`` as lines; tuples are taken apart."""
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for inner, item in zip(target.elts, value.elts):
                self.bind(inner, item, frame)
            return
        if isinstance(target, ast.Name):
            if isinstance(value, ast.Name) and value.id == target.id:
                return
            self.assigned[target.id] = value
            if self._gives_compiled(value):
                self.compiled.add(target.id)
        stored = copy.deepcopy(target)
        for part in ast.walk(stored):
            if isinstance(part, (ast.Name, ast.Tuple, ast.List)):
                part.ctx = ast.Store()
        self.lines.append(Line(ast.fix_missing_locations(ast.Assign([stored], value, lineno=1)), frame))

    # -- statements -------------------------------------------------------------------------------------------

    def _block(self, body: Sequence[ast.stmt], frame: Frame, depth: int) -> None:
        for node in body:
            self._statement(node, frame, depth)

    def _statement(self, node: ast.stmt, frame: Frame, depth: int) -> None:
        if isinstance(node, ast.FunctionDef):
            self._define(node, frame)
        elif isinstance(node, ast.If):
            self._branch(node, frame, depth)
        elif isinstance(node, ast.Return):
            if node.value is not None and self.compiles(node.value):
                self._simple(ast.copy_location(ast.Expr(node.value), node), frame, depth)
            raise _Left(node.value)
        elif isinstance(node, (ast.Continue, ast.Break)):
            raise _Left
        elif isinstance(node, ast.Raise):
            self._raise(node)
        elif isinstance(node, (ast.For, ast.While, ast.With, ast.Try)) and self.compiles(node):
            self._compound(node, frame, depth)
        else:
            self._simple(node, frame, depth)

    def _define(self, node: ast.FunctionDef, frame: Frame) -> None:
        if any(self.is_compiler(decorator) for decorator in node.decorator_list):
            self.compiled.add(node.name)
        elif any(self.compiles(statement) for statement in node.body):
            self.functions[node.name] = node
        self.assigned.pop(node.name, None)
        self.defined[node.name] = node
        self.lines.append(Line(node, frame))

    def _branch(self, node: ast.If, frame: Frame, depth: int) -> None:
        value = self.fold.value(node.test)
        if value is UNKNOWN and _only_leaves(node.body):
            value = False
        if value is UNKNOWN and _jumps(node.body):
            value = False
        if value is UNKNOWN and not self.compiles(node):
            self._simple(node, frame, depth)
            return
        self._block(node.body if value is UNKNOWN or value else node.orelse, frame, depth)

    def _raise(self, node: ast.Raise) -> None:
        call = node.exc
        if call is not None and "Skip" in ast.unparse(call):
            words = [part.value for part in ast.walk(call) if isinstance(part, ast.Constant)]
            raise Skipped(str(words[0]) if words else "no reason given")
        raise _Left

    def _compound(self, node: ast.For | ast.While | ast.With | ast.Try, frame: Frame, depth: int) -> None:
        if isinstance(node, ast.With):
            for item in node.items:
                if self.is_compiler(item.context_expr) and isinstance(item.context_expr, ast.Call):
                    frame = replace(frame, compiled=item.context_expr)
                else:
                    frame = frame.enter(item.context_expr, self.source)
                    self._bind_context(item, frame)
            self._block(node.body, frame, depth)
            return
        if isinstance(node, ast.For):
            items = self.fold.elements(node.iter)
            first = ast.Call(
                ast.Name("next", ast.Load()), [ast.Call(ast.Name("iter", ast.Load()), [node.iter], [])], []
            )
            self.bind(node.target, self.choose(items) if items else first, frame)
        try:
            self._block(node.body, frame, depth)
        except _Left as left:
            if left.value is not None or isinstance(node, ast.Try):
                raise

    def _bind_context(self, item: ast.withitem, frame: Frame) -> None:
        """``with scoped_library("ns", "FRAGMENT") as lib``: the library, which then lives as long as the program."""
        call = item.context_expr
        if item.optional_vars is not None and isinstance(call, ast.Call) and last_part(call.func) == "_scoped_library":
            library = ast.parse("torch.library.Library", mode="eval").body
            self.bind(item.optional_vars, ast.Call(library, call.args, call.keywords), frame)

    def _simple(self, node: ast.stmt, frame: Frame, depth: int) -> None:
        if isinstance(node, ast.Expr) and last_part(getattr(node.value, "func", node.value)) == "skipTest":
            raise Skipped(ast.unparse(node.value.args[0]) if isinstance(node.value, ast.Call) else "")
        if depth and not isinstance(node, ast.ClassDef):
            for call in [part for part in ast.walk(node) if isinstance(part, ast.Call)]:
                helper, given = self._helper(call)
                if helper is None:
                    continue
                value = self._inline(helper, given, call, frame, depth - 1)
                if isinstance(node, ast.Assign) and node.value is call:
                    if value is not None:
                        self.bind(node.targets[0], value, frame)
                    return
                if isinstance(node, (ast.Expr, ast.Assert)):
                    return
        self._name_models(node, frame)
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            self.assigned[name] = node.value
            self.functions.pop(name, None)
            if self._gives_compiled(node.value):
                self.compiled.add(name)
            else:
                self.compiled.discard(name)
        elif isinstance(node, ast.Assign):
            for name in bound_names(node):
                self.assigned.pop(name, None)
        self.lines.append(Line(node, frame))

    def _name_models(self, node: ast.stmt, frame: Frame) -> None:
        """``self.common(Model(), …)``, ``torch.compile(Model())(…)``: the module gets a line and a name of its own."""
        if isinstance(node, ast.ClassDef):
            return
        for call in list(_calls(node)):
            where = 1 if len(call.args) > 1 and dotted(call.args[0]) == "self" else 0
            model = call.args[where] if len(call.args) > where else None
            if not isinstance(model, ast.Call) or self.is_compiler(model.func) or last_part(model.func) == "partial":
                continue
            if isinstance(model.func, ast.Call) or not (last_part(call.func) in COMPARERS or self.wraps(call)):
                continue
            name = "module" if "module" not in self.assigned else f"module{len(self.lines)}"
            self.bind(ast.Name(name, ast.Store()), model, frame)
            call.args[where] = ast.Name(name, ast.Load())

    def wraps(self, call: ast.Call) -> bool:
        """Is the first argument what gets compiled? ``torch.compile(f)``, ``torch.compile(dynamic=True)(f)``."""
        if not call.args or not self.is_compiler(call.func):
            return False
        return isinstance(call.func, ast.Call) or last_part(call.func) == "compile"

    # -- helpers that compile -----------------------------------------------------------------------------------

    def _helper(self, call: ast.Call) -> tuple[ast.FunctionDef | None, list[ast.expr]]:
        """The function of this file that a call runs, if that one compiles; and the positional arguments."""
        if (run := self._run_by_another(call)) is not None:
            return run, list(call.args)[1:]
        helper = self._callee(call)
        given = any(self._gives_compiled(argument) for argument in call.args)
        if helper is None or not (given or any(self.compiles(part) for part in helper.body)):
            return None, []
        args = list(call.args)
        through_class = isinstance(call.func, ast.Attribute) and dotted(call.func.value) in self.source.classes
        return helper, args[1:] if through_class and args and dotted(args[0]) in ("self", "cls") else args

    def _run_by_another(self, call: ast.Call) -> ast.FunctionDef | None:
        """``run_and_get_code(function, *args)`` of a local function that calls what is compiled: the function."""
        first = call.args[0] if call.args else None
        if isinstance(first, ast.Name) and last_part(call.func).startswith("run_"):
            return self.functions.get(first.id)
        return None

    def _callee(self, call: ast.Call) -> ast.FunctionDef | None:
        """The function of the test, its class or its file that a call runs."""
        func, name = call.func, last_part(call.func)
        node: ast.stmt | None = None
        if name in COMPARERS or name.startswith("assert"):
            return None
        if isinstance(func, ast.Name) and name in self.defined and name not in self.assigned:
            node = self.defined[name]
        elif isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id in ("self", "cls"):
                node = self.members.get(name)
            elif func.value.id in self.source.classes:
                node = self.source.members(self.source.classes[func.value.id]).get(name)
        elif isinstance(func, ast.Name) and name not in self.assigned:
            node = self.source.table.get(name)
        return node if isinstance(node, ast.FunctionDef) else None

    def _inline(
        self, helper: ast.FunctionDef, given: list[ast.expr], call: ast.Call, frame: Frame, depth: int
    ) -> ast.expr | None:
        """The helper's body with its parameters bound; what it returns."""
        parameters = [argument.arg for argument in (*helper.args.posonlyargs, *helper.args.args)]
        if parameters[:1] in (["self"], ["cls"]):
            parameters = parameters[1:]
        if given and dotted(given[0]) == "self":  # a function of the module that takes the test case
            given = given[1:] if len(given) > len(parameters) else [*given[1:]]
            parameters = [name for name in parameters if name not in ("test_case", "testcase", "test", "tc")]
        values = dict(zip(parameters, given))
        if helper.args.vararg:
            values[helper.args.vararg.arg] = ast.Tuple(given[len(parameters) :], ast.Load())
        values.update({keyword.arg: keyword.value for keyword in call.keywords if keyword.arg})
        defaults = dict(zip(reversed([a.arg for a in helper.args.args]), reversed(helper.args.defaults)))
        for argument, default in zip(helper.args.kwonlyargs, helper.args.kw_defaults):
            if default is not None:
                defaults[argument.arg] = default
        for name, value in [*defaults.items(), *values.items()]:
            if name in values and values[name] is not value:
                continue
            self.bind(ast.Name(name, ast.Store()), copy.deepcopy(value), frame)
        inner = frame
        for decorator in helper.decorator_list:
            inner = inner.enter(decorator, self.source)
        body = copy.deepcopy(helper.body)
        try:
            self._block(body, inner, depth)
        except _Left as left:
            return left.value
        return None

    # -- what compiles --------------------------------------------------------------------------------------------

    def is_compiler(self, node: ast.expr) -> bool:
        """``torch.compile``, ``torch.compile(…)`` without a function, ``torch._dynamo.optimize("…")``."""
        if isinstance(node, ast.Call):
            return self.is_compiler(node.func) and (not node.args or not self._takes_function(node))
        full = self.source.full_name(node)
        return full.split(".")[-1] in COMPILERS and full.split(".")[0] in ROOTS

    def _takes_function(self, call: ast.Call) -> bool:
        return self.source.full_name(call.func).split(".")[-1] == "compile"

    def _gives_compiled(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Name):
            return node.id in self.compiled
        return isinstance(node, ast.Call) and self.wraps(node)

    def compiles(self, node: ast.AST) -> bool:
        """Does something in here compile, compare, or call what is compiled?"""
        return any(self._compiling(call) for call in _calls(node))

    def _compiling(self, call: ast.Call) -> bool:
        name = last_part(call.func)
        if name in COMPARERS or self.is_compiler(call.func) or name in TRACERS:
            return True
        if isinstance(call.func, ast.Name) and (name in self.compiled or name in self.functions):
            return True
        if self._run_by_another(call) is not None:
            return True
        if any(isinstance(argument, ast.Name) and argument.id in self.compiled for argument in call.args):
            return True
        if isinstance(call.func, ast.Call) and last_part(call.func.func) == "make_fx":
            return True
        helper = self._callee(call)
        return helper is not None and any(_plainly(inner, self) for inner in _calls(helper))


def _plainly(call: ast.Call, straightener: Straightener) -> bool:
    return last_part(call.func) in COMPARERS or straightener.is_compiler(call.func)


def _calls(node: ast.AST) -> Iterator[ast.Call]:
    yield from (part for part in ast.walk(node) if isinstance(part, ast.Call))


def _jumps(body: Sequence[ast.stmt]) -> bool:
    """Does the block leave the loop or the function around it?"""
    for node in body:
        if isinstance(node, (ast.Return, ast.Continue, ast.Break)):
            return True
        if isinstance(node, (ast.If, ast.With)) and _jumps([*node.body, *getattr(node, "orelse", [])]):
            return True
    return False


def _only_leaves(body: Sequence[ast.stmt]) -> bool:
    """Does the branch do nothing but end the test, the loop, or check something?"""
    for node in body:
        if isinstance(node, (ast.Return, ast.Raise, ast.Continue, ast.Break, ast.Pass, ast.Assert)):
            continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            text = dotted(node.value.func)
            if text.startswith("self.assert") or text in ("self.skipTest", "print"):
                continue
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            continue
        return False
    return True
