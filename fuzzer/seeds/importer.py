"""From files of tests and scripts to programs: finds the tests, straightens them, assembles each compiled call."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.seeds.assemble import Assembler
from fuzzer.seeds.events import Event, EventFinder, parameters_of, random_inputs
from fuzzer.seeds.names import DEVICES, dotted, last_part
from fuzzer.seeds.resolve import CannotImport
from fuzzer.seeds.settings import Frame, decorated
from fuzzer.seeds.source import SourceFile, Test
from fuzzer.seeds.straighten import Line, Skipped, Straightener

#: Programs of one test at most: values of its loops and parameters times compiled calls.
_VARIANTS = 3
_EVENTS = 4
#: Reasons that say that the test is none for a CPU, or none that a program could show.
NOT_FOR_US = ("the test skips itself on a CPU", "nothing is compiled", "expects an error")


@dataclass(frozen=True)
class Imported:
    """What became of one test: programs, or the reason why there is none."""

    test: str  # "Class.test_name"
    file: str
    programs: tuple[Program, ...] = ()
    reason: str = ""
    detail: str = ""


def import_paths(paths: Sequence[str | Path]) -> list[Imported]:
    """All tests of files and folders (``*.py``, recursively).

    Raises:
        UserError: a path is absent, a named file is no Python, or there is no Python file at all.
    """
    found: list[Imported] = []
    files = list(_files(paths))
    if not files:
        raise UserError(f"{', '.join(map(str, paths))}: no Python file there; name files or folders of tests")
    for file, named in files:
        try:
            source = SourceFile.read(file)
        except UserError as error:
            if named:
                raise
            found.append(Imported(file.stem, str(file), reason="not a readable Python file", detail=str(error)))
            continue
        found += import_source(source)
    return _distinct(found)


def _files(paths: Sequence[str | Path]) -> Iterator[tuple[Path, bool]]:
    for path in map(Path, paths):
        if path.is_dir():
            yield from ((file, False) for file in sorted(path.rglob("*.py")))
        elif path.exists():
            yield path, True
        else:
            raise UserError(f"{path}: no such file or folder")


def import_source(source: SourceFile) -> list[Imported]:
    """All tests of one file."""
    return [_import_test(source, test) for test in source.tests()]


def _distinct(found: list[Imported]) -> list[Imported]:
    """The same program of several tests is kept once."""
    seen: set[str] = set()
    kept = []
    for item in found:
        fresh = []
        for program in item.programs:
            key = program.text.replace(str(program.meta["source"]), "").replace(str(program.meta["title"]), "")
            if key not in seen:
                seen.add(key)
                fresh.append(program)
        duplicate = bool(item.programs) and not fresh
        kept.append(replace(item, programs=tuple(fresh), reason="a duplicate" if duplicate else item.reason))
    return kept


def _import_test(source: SourceFile, test: Test) -> Imported:
    empty = Imported(test.title, str(source.path))
    programs: list[Program] = []
    failure: CannotImport | None = None
    variants = 1
    number = 0
    while number < variants:
        try:
            straightener, made, why = _variant(source, test, number, len(programs))
        except CannotImport as error:
            failure = failure or error
            break
        variants = min(_VARIANTS, straightener.longest)
        programs += made
        failure = failure or why
        number += 1
    if programs:
        return replace(empty, programs=tuple(programs))
    assert failure is not None
    return replace(empty, reason=failure.reason, detail=str(failure))


def _variant(
    source: SourceFile, test: Test, pick: int, numbered: int
) -> tuple[Straightener, list[Program], CannotImport | None]:
    """Programs of one choice of values. Raises ``CannotImport`` where there is nothing to make one of."""
    members = source.members(test.owner)
    straightener = Straightener(source, members, pick)
    try:
        lines, events = _events(source, test, straightener, members)
    except Skipped as skipped:
        raise CannotImport("the test skips itself on a CPU", str(skipped)) from None
    wanted = [event for event in events if not event.frame.raises]
    if not wanted:
        raise CannotImport("expects an error" if events else "nothing is compiled")
    assembler = Assembler(source, lines, members, straightener)
    for line in lines:  # so that names of compiled callables are known while programs are assembled
        assembler.finder._note(line.node)
    made: list[Program] = []
    failure: CannotImport | None = None
    for event, second in list(_paired(wanted))[:_EVENTS]:
        title = test.title + (f" ({numbered + len(made) + 1})" if numbered + len(made) else "")
        meta: dict[str, Any] = {"title": title, "engine": "import", "source": f"{source.path.name}::{test.title}"}
        for following in (second, None):
            try:
                made.append(assembler.program(event, following, meta, f"{source.path.name}::{title}"))
                break
            except CannotImport as error:
                failure = failure or error
                if following is None:
                    break
    return straightener, made, failure


def _paired(events: Sequence[Event]) -> Iterator[tuple[Event, Event | None]]:
    """Events, each with a later call of the same compiled callable; calls after the second are left out."""
    done: set[str] = set()
    for number, event in enumerate(events):
        if not event.group:
            yield event, None
        elif event.group not in done:
            done.add(event.group)
            second = None
            for later in events[number + 1 :]:
                if later.group == event.group and ast.dump(_shape(later)) != ast.dump(_shape(event)):
                    second = later
                    break
            yield event, second


def _shape(event: Event) -> ast.expr:
    items = [*event.args, *event.keywords.values(), *([event.whole] if event.whole is not None else [])]
    return ast.Tuple(list(items), ast.Load())


def _events(
    source: SourceFile, test: Test, straightener: Straightener, members: dict[str, ast.stmt]
) -> tuple[list[Line], list[Event]]:
    frame = decorated(test.function.decorator_list, source) if test.function else Frame()
    if test.callable is not None:
        return _of_factory(source, test, frame)
    for statement in _set_up(members):
        straightener.bind(statement.targets[0], statement.value, Frame())
    if test.function is not None:
        _bind_parameters(source, test.function, straightener)
    lines = straightener.run(copy.deepcopy(test.body), frame)
    events = EventFinder(source, lines).run()
    if not events and test.function is None:
        return _of_bare_module(source, test, lines)
    if test.function is not None and test.function.name.startswith("test") and events and events[0].rank == 2:
        events = events[:1]
    elif events and events[0].rank == 2:
        events = events[-1:]  # a script: its last call, which is the whole model's
    return lines, events


def _of_factory(source: SourceFile, test: Test, frame: Frame) -> tuple[list[Line], list[Event]]:
    """``test_x = make_test(CALLABLE)`` or a plain function under such a decorator: random inputs, one a parameter."""
    assert test.callable is not None
    lines: list[Line] = []
    function = test.function
    if function is not None:
        lines.append(Line(function, frame))
        count = len(list(parameters_of(function)))
        return lines, [Event(test.callable, random_inputs(count), {}, 1, 1, frame)]
    value = test.callable
    name = ast.Name("module", ast.Load())
    assign = ast.Assign([ast.Name("module", ast.Store())], value, lineno=test.line)
    lines.append(Line(ast.fix_missing_locations(assign), frame))
    definition = source.classes.get(last_part(value.func)) if isinstance(value, ast.Call) else None
    forward = source.members(definition).get("forward")
    count = len(list(parameters_of(forward))) if isinstance(forward, ast.FunctionDef) else 1
    return lines, [Event(name, random_inputs(count), {}, 1, 1, frame)]


def _of_bare_module(source: SourceFile, test: Test, lines: list[Line]) -> tuple[list[Line], list[Event]]:
    """A script that only defines a module and inputs: as many of them, in order, as ``forward`` takes."""
    for name, definition in reversed(source.classes.items()):
        forward = source.members(definition).get("forward")
        if not isinstance(forward, ast.FunctionDef) or not definition.bases:
            continue
        wanted = len(list(parameters_of(forward)))
        made = [target for line in lines for target in _made_by_call(line.node)]
        if not 0 < wanted <= len(made):
            continue
        call = ast.parse(f"{name}()", mode="eval").body
        instance = next((n for n, value in made if ast.unparse(getattr(value, "func", value)) == name), "")
        if not instance:
            assign = ast.Assign([ast.Name("module", ast.Store())], call, lineno=test.line)
            lines = [*lines, Line(ast.fix_missing_locations(assign), Frame())]
        inputs = [ast.Name(n, ast.Load()) for n, _value in made if n != instance][:wanted]
        model = ast.Name(instance or "module", ast.Load())
        if len(inputs) == wanted:
            return lines, [Event(model, tuple(inputs), {}, len(lines), len(lines), Frame())]
    return lines, []


def _made_by_call(node: ast.stmt) -> Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and isinstance(node.value, ast.Call):
        yield node.targets[0].id, node.value


def _set_up(members: dict[str, ast.stmt]) -> Iterator[ast.Assign]:
    """``self.x = value`` of setUp, as assignments to plain names, which from then on are members."""
    setup = members.get("setUp") or members.get("setup_method")
    for node in list(ast.walk(setup)) if isinstance(setup, ast.FunctionDef) else []:
        if isinstance(node, ast.Assign) and dotted(node.targets[0]).startswith("self."):
            name = last_part(node.targets[0])
            if name not in DEVICES and not name.startswith("_"):
                members.setdefault(name, node)
                yield ast.Assign([ast.Name(name, ast.Store())], copy.deepcopy(node.value), lineno=node.lineno)


def _bind_parameters(source: SourceFile, function: ast.FunctionDef, straightener: Straightener) -> None:
    """Values for the test's own parameters: from its decorators, from fixtures, from what such names usually are."""
    offered = {}
    for decorator in function.decorator_list:
        offered.update(_offered(decorator, straightener))
    defaults = dict(zip(reversed([a.arg for a in function.args.args]), reversed(function.args.defaults)))
    for argument in function.args.args + function.args.kwonlyargs:
        name = argument.arg
        if name in ("self", "cls") or name in DEVICES:
            continue
        if name in offered:
            straightener.bind(ast.Name(name, ast.Store()), offered[name], Frame())
        elif name in defaults:
            straightener.bind(ast.Name(name, ast.Store()), defaults[name], Frame())
        elif name == "dtype":
            straightener.bind(ast.Name(name, ast.Store()), ast.parse("torch.float32", mode="eval").body, Frame())
        elif isinstance(fixture := source.table.get(name), ast.FunctionDef) and _returned(fixture) is not None:
            for statement in fixture.body[:-1]:
                straightener.lines.append(Line(copy.deepcopy(statement), Frame()))
            value = _returned(fixture)
            assert value is not None
            straightener.bind(ast.Name(name, ast.Store()), copy.deepcopy(value), Frame())
        else:
            raise CannotImport("a parameter that the file does not explain", name)


def _returned(fixture: ast.FunctionDef) -> ast.expr | None:
    marked = any("fixture" in ast.unparse(decorator) for decorator in fixture.decorator_list)
    last = fixture.body[-1]
    return last.value if marked and isinstance(last, ast.Return) else None


def _offered(decorator: ast.expr, straightener: Straightener) -> dict[str, ast.expr]:
    """Parameter → one value, of ``@parametrize("a, b", […])`` and ``@dtypes(…)``."""
    if not isinstance(decorator, ast.Call) or not decorator.args:
        return {}
    name = last_part(decorator.func)
    if name in ("dtypes", "dtypesIfCPU") and not any(isinstance(item, ast.Starred) for item in decorator.args):
        return {"dtype": straightener.choose(decorator.args)}
    if name != "parametrize" or len(decorator.args) < 2 or not isinstance(decorator.args[0], ast.Constant):
        return {}
    names = [part.strip() for part in str(decorator.args[0].value).split(",")]
    items = straightener.fold.elements(decorator.args[1])
    if not items:
        return {}
    value = _unwrapped(straightener.choose(items))
    if len(names) == 1:
        return {names[0]: value}
    if isinstance(value, (ast.Tuple, ast.List)):
        return dict(zip(names, value.elts))
    return {}


def _unwrapped(value: ast.expr) -> ast.expr:
    """``subtest(x, name=…)``, ``pytest.param(x, id=…)`` → x."""
    if isinstance(value, ast.Call) and last_part(value.func) in ("subtest", "param") and value.args:
        return ast.Tuple(list(value.args), ast.Load()) if len(value.args) > 1 else value.args[0]
    return value
