"""Numbers and events of a campaign on disk: ``fuzzer_stats`` and ``plot_data`` (names of AFL), ``events.jsonl``."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.lock import holder

Value = int | float | str
Aggregation = Literal["sum", "mean", "max", "min", "first"]


@dataclass(frozen=True)
class Row:
    """One statistic. ``aggregation`` says how the values of several machines become one."""

    name: str
    description: str
    aggregation: Aggregation
    start: Value = 0


#: The one table of statistics. Rows are only ever added; scripts rely on the names.
TABLE: tuple[Row, ...] = (
    Row("start_time", "start of this run, seconds since 1970", "min"),
    Row("last_update", "when these numbers were written, seconds since 1970", "max"),
    Row("run_time", "seconds that the campaign has run, over all its runs", "max"),
    Row("fuzzer_pid", "process of the orchestrator", "first"),
    Row("cycles_done", "times the whole corpus was visited", "min"),
    Row("execs_done", "programs run", "sum"),
    Row("execs_per_sec", "programs per second, over the whole run", "sum", 0.0),
    Row("corpus_count", "seeds in the corpus", "sum"),
    Row("corpus_found", "seeds that this campaign added", "sum"),
    Row("saved_crashes", "findings kept, hangs apart", "sum"),
    Row("saved_hangs", "programs kept that never end", "sum"),
    Row("last_find", "when coverage last grew, seconds since 1970", "max"),
    Row("last_crash", "when the last finding was kept, seconds since 1970", "max"),
    Row("valid_rate", "share of programs that eager execution accepts, of those meant for it to accept", "mean", 0.0),
    Row("conformity", "share of the asked features that programs really had", "mean", 0.0),
    Row("programs_per_hour", "programs per hour, over the last minutes", "sum", 0.0),
    Row("operators_executed", "distinct operators that ran", "max"),
    Row("coverage_native", "C++ functions and blocks reached", "max"),
    Row("coverage_python", "lines of the compiler's Python reached", "max"),
    Row("coverage_events", "distinct compiler events seen", "max"),
    Row("coverage_pairs", "pairs of features that ran together", "max"),
    Row("findings_confirmed", "findings confirmed in fresh processes, debatable and known ones apart", "sum"),
    Row("findings_debatable", "confirmed differences that may be intended", "sum"),
    Row("findings_flaky", "failures that fresh processes did not confirm", "sum"),
    Row("findings_known", "findings that look like known issues", "sum"),
    Row("suspects_waiting", "suspects not yet confirmed or refuted", "sum"),
    Row("harness_errors", "faults of the harness itself", "sum"),
    Row("kernels", "C++ kernels that the compiler generated", "sum"),
    Row("kernels_reused", "of these, built for an earlier program and taken from the store", "sum"),
    Row("kernel_cpu", "processor seconds of the C++ compiler", "sum", 0.0),
    Row("interpreted", "programs whose kernels were interpreted, not compiled", "sum"),
    Row("interpreted_withdrawn", "of these, suspects that compiled kernels cleared", "sum"),
    Row("toolchain_audits", "programs run with the plain toolchain as well", "sum"),
    Row("toolchain_differences", "of these, judged otherwise with it", "sum"),
    Row("refused_as_meant", "programs written for eager to refuse, and refused", "sum"),
    Row("workers_alive", "fork servers that answer", "sum"),
    Row("llm_requests", "requests to the language model", "sum"),
    Row("llm_tokens", "tokens of the language model, both ways", "sum"),
    Row("llm_failures", "of these requests, without a usable answer", "sum"),
    Row("llm_money", "what they cost, in the unit of --llm-price", "sum", 0.0),
    Row("llm_programs", "programs of the language model that ran", "sum"),
    Row("disk_free", "bytes free on the campaign's disk", "min"),
    Row("rss", "resident memory of the orchestrator, bytes", "sum"),
    Row("discovery_probability", "estimated chance that the next program finds something new", "mean", 0.0),
    Row("target_torch", "version of the torch under test", "first", ""),
    Row("stop_reason", "why the campaign stopped; empty while it runs", "first", ""),
)

_ROWS = {row.name: row for row in TABLE}

#: Coverage domains may be added by campaigns under this prefix.
_DOMAIN_PREFIX = "coverage_"

#: Columns of ``plot_data``, in order.
PLOT_COLUMNS = (
    "run_time", "execs_done", "execs_per_sec", "corpus_count", "saved_crashes", "saved_hangs", "valid_rate",
    "conformity", "operators_executed", "coverage_native", "coverage_python", "coverage_events", "coverage_pairs",
    "findings_confirmed", "findings_debatable", "findings_flaky", "findings_known", "workers_alive",
)  # fmt: skip

#: A day of a busy campaign writes about 10 MB of events; with one older file at most twice this stays.
_EVENTS_CAP = 32 << 20


def row(name: str) -> Row:
    """The table's row; raises ``KeyError`` for a name that neither is in it nor names a coverage domain."""
    if name not in _ROWS and name.startswith(_DOMAIN_PREFIX):
        return Row(name, f"what was reached in domain {name.removeprefix(_DOMAIN_PREFIX)}", "max")
    return _ROWS[name]


def aggregate(machines: Sequence[Mapping[str, Value]]) -> dict[str, Value]:
    """One set of statistics from those of several machines, by the table's rules; ``mean`` is weighed by programs."""
    merged: dict[str, Value] = {}
    for name in dict.fromkeys(name for machine in machines for name in machine):
        having = [machine for machine in machines if name in machine]
        values = [machine[name] for machine in having]
        rule = row(name).aggregation
        numbers = [value for value in values if not isinstance(value, str)]
        if rule == "first" or not numbers:
            merged[name] = values[0]
        elif rule == "mean":
            weights = [max(float(machine.get("execs_done", 1)), 1e-9) for machine in having]
            merged[name] = sum(float(v) * w for v, w in zip(numbers, weights)) / sum(weights)
        else:
            merged[name] = sum(numbers) if rule == "sum" else max(numbers) if rule == "max" else min(numbers)
    return merged


class StatsFiles:
    """Writes ``fuzzer_stats`` and ``plot_data``."""

    def __init__(self, directory: CampaignDirectory) -> None:
        self.directory = directory

    def write(self, values: Mapping[str, Value]) -> None:
        """Replace ``fuzzer_stats``; rows that are not given take their start value. ``KeyError`` for unknown names."""
        write_stats(self.directory.fuzzer_stats, values)

    def plot(self, values: Mapping[str, Value]) -> None:
        """Append one line to ``plot_data``; a new file begins with the names, a torn last line is ended first."""
        cells = [_text(values.get(name, row(name).start)) for name in PLOT_COLUMNS]
        _append_line(self.directory.plot_data, ", ".join(cells), "# " + ", ".join(PLOT_COLUMNS))


def write_stats(path: Path, values: Mapping[str, Value]) -> None:
    """``name : value`` lines in the table's order, further domains last."""
    for name in values:
        row(name)
    complete = {item.name: values.get(item.name, item.start) for item in TABLE}
    complete |= {name: value for name, value in values.items() if name not in complete}
    width = max(len(name) for name in complete)
    atomic.write_text(path, "".join(f"{name:<{width}} : {_text(value)}\n" for name, value in complete.items()))


def read_stats(path: Path) -> dict[str, Value]:
    """What ``write_stats`` wrote, with numbers as numbers; empty when there is no file. Odd lines are skipped."""
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return {}
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {name.strip(): _value(name.strip(), text.strip()) for name, _colon, text in pairs}


class Events:
    """``events.jsonl``: one JSON object a line with ``time``, ``kind``, ``text``, ``details``.

    At ``max_bytes`` the file becomes ``events.jsonl.1``, which replaces an older one.
    """

    def __init__(self, path: Path, max_bytes: int = _EVENTS_CAP) -> None:
        self.path = path
        self.max_bytes = max_bytes

    def append(self, time: float, kind: str, text: str, details: Mapping[str, Any] | None = None) -> None:
        """Add one event. ``time`` is in seconds since 1970. Raises ``OSError``, ``TypeError`` for odd details."""
        event = {"time": time, "kind": kind, "text": text, "details": dict(details or {})}
        line = json.dumps(event, separators=(",", ":"))
        if self.path.exists() and self.path.stat().st_size + len(line) > self.max_bytes:
            os.replace(self.path, self.path.with_name(self.path.name + ".1"))
        _append_line(self.path, line)

    def read(self) -> Iterable[dict[str, Any]]:
        """All events that are kept, oldest first; lines that are no events are skipped."""
        for path in (self.path.with_name(self.path.name + ".1"), self.path):
            if not path.exists():
                continue
            with open(path, encoding="utf-8", errors="replace") as stream:
                for line in stream:
                    try:
                        event = json.loads(line)
                    except ValueError:
                        continue  # torn by a crash of the machine
                    if isinstance(event, dict):
                        yield event


def read_status(directory: CampaignDirectory) -> dict[str, Any]:
    """The state of a campaign, running or not, for ``eddy status --json``.

    All names of the table; beside them ``coverage {domain: n}``, ``findings {confirmed, debatable, flaky, known}``,
    ``running``, ``pid`` (of the live orchestrator, else 0) and ``directory``. A campaign that died without a word
    has the ``stop_reason`` "died". Takes no lock and writes nothing.
    """
    stats = read_stats(directory.fuzzer_stats)
    status: dict[str, Any] = {item.name: stats.get(item.name, item.start) for item in TABLE}
    status |= {name: value for name, value in stats.items() if name not in status}
    pid = holder(directory.lock_file)
    status["coverage"] = _group(status, _DOMAIN_PREFIX)
    status["findings"] = _group(status, "findings_")
    status["running"] = pid is not None
    status["pid"] = pid or 0
    status["directory"] = str(directory.path)
    if pid is None:
        status["workers_alive"] = 0
        if stats and not status["stop_reason"]:
            status["stop_reason"] = "died"
    return status


def _group(status: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in status.items() if name.startswith(prefix)}


def _text(value: Value) -> str:
    if isinstance(value, float):
        return f"{value:.6g}" if abs(value) < 1e6 else f"{value:.0f}"
    return " ".join(str(value).split())


def _value(name: str, text: str) -> Value:
    if name in _ROWS and isinstance(_ROWS[name].start, str):
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text


def _append_line(path: Path, line: str, head: str = "") -> None:
    """One write of one line; starts with ``head`` when the file is new, and on a fresh line when it was torn."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(descriptor).st_size
        before = head + "\n" if head and not size else ""
        if size and os.pread(descriptor, 1, size - 1) != b"\n":
            before = "\n"
        data = f"{before}{line}\n".encode("utf-8", "backslashreplace")
        if os.write(descriptor, data) != len(data):
            os.ftruncate(descriptor, size)
            raise OSError(28, "no space for a whole line", str(path))
    finally:
        os.close(descriptor)
