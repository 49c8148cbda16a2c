"""Python coverage of the compiler's own packages: which lines ran that were not known.

Bytecode is never rewritten: Dynamo inlines some of torch's Python and would trace the rewriting. Python 3.10 and 3.11
use a trace function, 3.12 and newer ``sys.monitoring``. The program under test lies outside the packages and is never
measured.
"""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, FunctionType
from typing import Any, Protocol

from harness.coverage.helper import Unavailable, build
from harness.coverage.line_table import LineTable

#: What makes up torch.compile, front to back.
COMPILER_PACKAGES = (
    "torch._dynamo",
    "torch._inductor",
    "torch._functorch",
    "torch.fx",
    "torch._decomp",
    "torch._refs",
    "torch._prims",
    "torch._prims_common",
    "torch._subclasses",
    "torch._higher_order_ops",
    "torch._meta_registrations",
    "torch._guards",
    "torch.utils._sympy",
)


class Tracer(Protocol):
    """Marks lines in a ``LineTable`` between ``resume`` and ``pause``, of this thread only."""

    def resume(self) -> None: ...

    def pause(self) -> None: ...

    def forking(self) -> None:
        """In the server, before a fork: what is known has changed, marks are gone."""


class PythonCoverage:
    """Line coverage. Made once in the fork server; children inherit it by ``fork``.

    Ids are line numbers; files are relative to site-packages, such as ``torch/_inductor/ir.py``. A function's first
    line counts as reached when the function is called.
    """

    name = "python"

    def __init__(self, packages: tuple[str, ...] = COMPILER_PACKAGES, scratch: str | None = None) -> None:
        """``scratch`` is a folder for the trace function in C (3.10, 3.11); without it, or without a compiler or
        Python's headers, the slower one in Python serves."""
        self.total: dict[str, int] = {}  # file -> number of executable lines
        self._packages = packages
        self._scratch = scratch
        self._table: LineTable | None = None
        self._tracer: Tracer | None = None
        self._detached = False
        self._measures = False

    def start(self) -> None:
        """Read the packages' line tables and make the shared marks.

        Raises:
            Unavailable: none of the packages is installed, or (3.12+) every monitoring tool id is taken.
        """
        if self._table is not None:
            raise Unavailable("python coverage is already started in this process")
        table = LineTable(self._packages)
        self._tracer = make_tracer(table, self._scratch)
        self._table = table
        self.total = table.total

    def mark_known(self, lines: dict[str, Iterable[int]]) -> None:
        """Never report these again; code whose lines are all known is not traced. Unknown ids are ignored."""
        self._started().learn(lines)

    def reset(self) -> None:
        """In the server, before each fork: forget all marks."""
        self._started().clear()
        if self._tracer is not None:
            self._tracer.forking()

    def child_start(self) -> None:
        """In the child that is measured: nothing to do, the tables were inherited."""

    def child_detach(self) -> None:
        """In a child whose lines must not be reported: ``measuring`` does nothing from here on."""
        self._detached = True

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Around the stages that compile or run compiled code, in the child; may be entered again, not nested."""
        self._started()
        if self._detached or self._tracer is None:
            yield
            return
        self._tracer.resume()
        self._measures = True
        try:
            yield
        finally:
            self._measures = False
            self._tracer.pause()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Within ``measuring``, or outside it: lines that run meanwhile are not seen."""
        if not self._measures or self._tracer is None:
            yield
            return
        self._tracer.pause()
        try:
            yield
        finally:
            self._tracer.resume()

    def harvest(self, keep: bool = False) -> dict[str, list[int]]:
        """File -> lines reached since ``reset`` and never known before, ascending.

        They become known, as by ``mark_known``. With ``keep`` they do not, and the next child reports them again.
        """
        table = self._started()
        found = table.marked()
        if not keep:
            table.learn(dict(found))
        return found

    def _started(self) -> LineTable:
        if self._table is None:
            raise RuntimeError("python coverage is not started")
        return self._table


def make_tracer(table: LineTable, scratch: str | None) -> Tracer:
    """The cheapest tracer for this interpreter. Raises ``Unavailable`` as ``MonitoringTracer`` does."""
    if sys.version_info >= (3, 12):
        return MonitoringTracer(table)
    if scratch is None:
        return TraceFunction(table)
    try:
        path = build("tracer.c", scratch, python=True)
        spec = importlib.util.spec_from_file_location("tracer", path)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    except (Unavailable, ImportError):
        return TraceFunction(table)
    return FrameTracer(table, module)


class FrameTracer:
    """The C tracer of 3.10 and 3.11 (``tracer.c``): traces only frames whose code has lines left to reach."""

    def __init__(self, table: LineTable, module: Any) -> None:
        self._native = module.Tracer(table.known, table.marks, table.base)
        self.resume: Callable[[], None] = self._native.resume
        self.pause: Callable[[], None] = self._native.pause
        self.forking: Callable[[], None] = self._native.recount
        # What is loaded now is read now; only what a child imports or defines itself is left for the child.
        for item in gc.get_objects():
            if type(item) is FunctionType and item.__code__.co_filename in table.base:
                self._native.add(item.__code__)


class TraceFunction:
    """``sys.settrace`` in pure Python: line events only in code that has a line not known and not yet seen here."""

    def __init__(self, table: LineTable) -> None:
        self._table = table
        self._previous: Any = None
        self._local: dict[int, Callable[..., Any] | None] = {}  # id of a code object -> its line function
        self._alive: list[CodeType] = []  # an id must not be given to another code object
        self._global = self._make_global()
        hide_from_dynamo(self._global, self._decide, self._make_local, table.pending)

    def resume(self) -> None:
        self._previous = sys.gettrace()
        sys.settrace(self._global)

    def pause(self) -> None:
        sys.settrace(self._previous)

    def forking(self) -> None:
        """Decisions are made anew in each child."""

    def _make_global(self) -> Callable[[FrameType, str, Any], Any]:
        unseen = object()
        get, decide = self._local.get, self._decide

        def on_call(frame: FrameType, event: str, argument: Any) -> Any:
            # By id: hashing a code object hashes its constants.
            local = get(id(frame.f_code), unseen)
            if local is None:
                return None
            if local is unseen:
                local = decide(frame.f_code)
                if local is None:
                    return None
            return local(frame, "line", argument)  # type: ignore[operator]

        return on_call

    def _decide(self, code: CodeType) -> Callable[..., Any] | None:
        pending = self._table.pending(code)
        local = self._make_local(code, pending) if pending else None
        self._local[id(code)] = local
        self._alive.append(code)
        return local

    def _make_local(self, code: CodeType, pending: set[int]) -> Callable[..., Any]:
        base, marks, decisions = self._table.base[code.co_filename], self._table.marks, self._local

        def on_line(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "line":
                line = frame.f_lineno
                if line in pending:
                    pending.discard(line)
                    marks[base + line] = 1
                    if not pending:
                        decisions[id(code)] = None
                        frame.f_trace = None
                        return None
            return on_line

        return on_line


class MonitoringTracer:
    """``sys.monitoring`` (3.12+): one event a function, one a line, each disabled where it has fired.

    Raises:
        Unavailable: every tool id is taken.
    """

    def __init__(self, table: LineTable) -> None:
        self._table = table
        self._monitoring: Any = sys.monitoring  # type: ignore[attr-defined,unused-ignore]
        # 0, 1, 2 and 5 are reserved by convention for debuggers, coverage, profilers and optimisers
        free = [tool for tool in (4, 3, 1, 0) if self._monitoring.get_tool(tool) is None]
        if not free:
            raise Unavailable("every sys.monitoring tool id is taken")
        self._tool = free[0]
        self._monitoring.use_tool_id(self._tool, "eddy")
        self._armed = False
        self._on_start, self._on_line = self._make_callbacks()
        hide_from_dynamo(self._on_start, self._on_line, table.pending)

    def resume(self) -> None:
        events = self._monitoring.events
        self._monitoring.register_callback(self._tool, events.PY_START, self._on_start)
        self._monitoring.register_callback(self._tool, events.LINE, self._on_line)
        if not self._armed:
            # Stays on: switching global events makes the interpreter instrument all code anew.
            self._monitoring.set_events(self._tool, events.PY_START)
            self._armed = True

    def pause(self) -> None:
        events = self._monitoring.events
        self._monitoring.register_callback(self._tool, events.PY_START, None)
        self._monitoring.register_callback(self._tool, events.LINE, None)

    def forking(self) -> None:
        """What has fired in a child is disabled there alone."""

    def _make_callbacks(self) -> tuple[Callable[[CodeType, int], Any], Callable[[CodeType, int], Any]]:
        tool, disable = self._tool, self._monitoring.DISABLE
        line_event, set_local_events = self._monitoring.events.LINE, self._monitoring.set_local_events
        bases, marks, known, pending = self._table.base, self._table.marks, self._table.known, self._table.pending

        def on_start(code: CodeType, offset: int) -> Any:
            lines = pending(code)
            if lines:
                if code.co_firstlineno in lines:
                    marks[bases[code.co_filename] + code.co_firstlineno] = 1
                set_local_events(tool, code, line_event)
            return disable

        def on_line(code: CodeType, line: int) -> Any:
            base = bases.get(code.co_filename)
            if base is not None and not known[base + line]:
                marks[base + line] = 1
            return disable

        return on_start, on_line


def hide_from_dynamo(*functions: Callable[..., Any]) -> None:
    """Keep Dynamo from compiling a tracer's own frames, which it may meet while a compiled function runs.

    Functions defined inside ``functions`` are hidden too. Does nothing where Dynamo is not loaded.
    """
    skip = getattr(sys.modules.get("torch._dynamo.eval_frame"), "skip_code", None)
    if skip is None:
        return
    for function in functions:
        code = function.__code__
        for each in (code, *(constant for constant in code.co_consts if isinstance(constant, CodeType))):
            skip(each)
