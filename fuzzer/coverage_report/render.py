"""A coverage report as text: short tables, widest column last, nothing but what a person asked for."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

from fuzzer.screen import printable


def render(report: dict[str, Any], top: int, width: int = 120) -> str:
    """Text of a report of ``assemble.report``: at most ``top`` rows a table, lines cut at ``width`` columns."""
    lines = [f"{report['programs']:,} programs, torch {report['torch'] or 'unknown'}, {report['directory']}"]
    lines += [f"note: {note}" for note in report["notes"]]
    for part, section in (("python", _python), ("native", _native), ("events", _events), ("features", _features)):
        if part in report:
            lines += ["", *section(report[part], top)]
    return "\n".join(_fitted(printable(line), width) for line in lines)


def _fitted(line: str, width: int) -> str:
    """Lists of names are wrapped, other lines cut."""
    if re.match(r"  (?:never|seen once): |note: |never realised: ", line):
        hang = "    " if line.startswith(" ") else "  "
        return "\n".join(textwrap.wrap(line, width, initial_indent="", subsequent_indent=hang, break_on_hyphens=False))
    return line if len(line) <= width else f"{line[: width - 1]}…"


def _table(head: Sequence[str], rows: Iterable[Sequence[Any]], total: int, top: int) -> list[str]:
    """Columns: numbers right-aligned, the last one as it comes. Nothing when there are no rows."""
    cells = [[f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row] for row in list(rows)[:top]]
    if not cells:
        return []
    widths = [max(len(row[column]) for row in [list(head), *cells]) for column in range(len(head))]
    lines = [
        "  " + "  ".join([*(f"{row[column]:>{widths[column]}}" for column in range(len(head) - 1)), row[-1]])
        for row in [list(head), *cells]
    ]
    return [*lines, f"  … {total - len(cells):,} more"] if total > len(cells) else lines


def _titled(title: str, table: list[str]) -> list[str]:
    return ["", title, *table] if table else []


def _python(part: dict[str, Any], top: int) -> list[str]:
    start = "" if part["start_up"] is None else f" beyond the {part['start_up']:,} of start-up"
    lines = [f"PYTHON: {part['lines']:,} lines of the compiler reached{start}"]
    if part["executable"]:
        lines[0] += f"; {part['executable']:,} are executable in functions"
        lines.append(f"{part['functions_reached']:,} of {part['functions']:,} functions reached")
    columns = ("new", "start_up", "executable", "functions_reached", "functions")
    head = ("new", "start-up", "of lines", "reached", "of functions")
    for title, key, name in (("by package", "packages", "package"), ("files with most new lines", "files", "file")):
        rows = [row for row in part[key] if row["new"] or key == "packages"]
        table = _table((*head, name), ([*(row[c] for c in columns), row[name]] for row in rows), len(rows), top)
        lines += _titled(title, table)
    never = part["never_files"]
    cells: list[tuple[Any, ...]] = [(row["lines"], row["functions"], row["file"]) for row in never]
    lines += _titled(
        f"files never reached: {len(never):,}", _table(("lines", "functions", "file"), cells, len(never), top)
    )
    never = part["never_functions"]
    cells = [(row["lines"], f"{row['file']}:{row['line']} {row['function']}") for row in never]
    title = f"functions never reached, in files that were: {len(never):,}"
    return lines + _titled(title, _table(("lines", "function"), cells, len(never), top))


def _native(part: dict[str, Any], top: int) -> list[str]:
    start = "" if part["start_up"] is None else f" beyond the {part['start_up']:,} of start-up"
    blocks = f" and {part['blocks']:,} basic blocks" if part["blocks"] else ""
    lines = [f"NATIVE: {part['functions']:,} C++ functions{blocks} reached{start}"]
    columns = ("new", "start_up", "functions")
    for title, key, name in (("by library", "libraries", "library"), ("by namespace", "namespaces", "namespace")):
        rows = [row for row in part[key] if row["new"] or row["start_up"]]
        table = _table(
            ("new", "start-up", "of functions", name),
            ([*(row[c] for c in columns), row[name]] for row in rows),
            len(rows),
            top,
        )
        lines += _titled(title, table)
    newest = part["newest"]
    rows_newest = ((row["run"], row["namespace"], row["name"]) for row in newest)
    lines += _titled("reached last", _table(("program", "namespace", "function"), rows_newest, 0, top))
    never = part["never_kernels"]
    rows_never = ((row["instances"], row["name"]) for row in never)
    title = f"at::native: {part['kernels_reached']:,} of {part['kernels']:,} functions of the source reached; never:"
    return lines + _titled(title, _table(("instances", "function"), rows_never, len(never), top))


_EVENTS = (
    ("lowerings", "lowerings"), ("decompositions", "decompositions"), ("fx_passes", "passes over graphs"),
    ("fallbacks", "calls out of generated code (fallbacks, libraries)"), ("operators", "operators, run eagerly"),
    ("graph_breaks", "reasons of graph breaks"), ("counters", "counters of the compiler"),
    ("kernels", "kernel classes"),
)  # fmt: skip


def _events(part: dict[str, Any], top: int) -> list[str]:
    lines = ["EVENTS"]
    for key, title in _EVENTS:
        section = part[key]
        seen, never = section["seen"], section["never"]
        if section["registry"]:
            lines += ["", f"{title}: {len(seen):,} of {section['known']:,} seen (known from: {section['registry']})"]
        else:
            lines += ["", f"{title}: {len(seen):,} seen; what else there could be is not known"]
        counted = [row for row in seen if row["count"]]
        lines += _table(("programs", "name"), ((row["count"], row["name"]) for row in counted), len(counted), top)
        rare = [row for row in counted[top:] if row["count"] == 1]
        if rare:
            lines.append(f"  seen once: {_listed([row['name'] for row in rare], top)}")
        if never:
            lines.append(f"  never: {_listed(never, top)}")
    return lines


def _listed(names: Sequence[str], top: int) -> str:
    more = f" … {len(names) - top:,} more" if len(names) > top else ""
    return ", ".join(names[:top]) + more


def _features(part: dict[str, Any], top: int) -> list[str]:
    rows = part["features"]
    lines = [f"FEATURES: {len(rows):,} realised; new coverage that programs with a feature brought"]
    columns = ("lift", "runs", "per_run", "python", "native", "events")
    head = ("lift", "programs", "new a program", "lines", "functions", "events", "feature, and where most of it is")

    def cells(row: dict[str, Any]) -> list[Any]:
        return [*(row[c] for c in columns), f"{row['feature']}  {row['where']}"]

    lines += _titled("most for their time (lift above 1)", _table(head, map(cells, rows), len(rows), top))
    rare = sorted(rows, key=lambda row: (row["runs"], row["feature"]))
    lines += _titled("rarest", _table(head, map(cells, rare), len(rows), top))
    if part["never"]:
        lines += ["", f"never realised: {_listed(part['never'], top)}"]
    return lines
