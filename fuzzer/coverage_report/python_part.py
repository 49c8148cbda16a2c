"""The part of a report about the compiler's Python: packages, files, and functions that nothing reached."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

from fuzzer.coverage_report.sources import Function, Source

_NOTHING: Set[int] = frozenset()


def python_part(
    reached: Mapping[str, Set[int]], baseline: Mapping[str, Set[int]] | None, sources: Mapping[str, Source]
) -> dict[str, Any]:
    """``{lines, start_up, executable, files, packages, never_files, never_functions}``.

    ``reached`` are lines beyond start-up, ``baseline`` those of start-up (None: not known; then what only start-up
    reaches counts as never reached). ``sources`` may be empty: then there is nothing to say about what never was.
    Rows of files: ``file, new, start_up, executable, functions, functions_reached``; ``executable`` counts lines inside
    functions, since lines that run on import are not measured. Never reached: files by lines, functions by lines.
    """
    start = baseline or {}
    files, packages = [], dict[str, dict[str, int]]()
    never_files, never_functions = [], []
    for file in sorted(reached.keys() | start.keys() | sources.keys()):
        new, source = reached.get(file, _NOTHING), sources.get(file)
        every = new | start.get(file, _NOTHING)
        row: dict[str, Any] = {"file": file, "new": len(new), "start_up": len(start.get(file, _NOTHING))}
        row |= {"executable": 0, "functions": 0, "functions_reached": 0}
        if source is not None:
            unreached = [function for function in source.functions if not is_reached(function, every)]
            row["executable"] = source.body_lines
            row["functions"] = len(source.functions)
            row["functions_reached"] = len(source.functions) - len(unreached)
            if row["functions"] and not row["functions_reached"]:
                never_files.append({"file": file, "lines": row["executable"], "functions": row["functions"]})
            else:
                never_functions += [_unreached(file, function) for function in unreached]
        files.append(row)
        total = packages.setdefault(_package(file), dict.fromkeys(list(row)[1:], 0))
        for name in total:
            total[name] += row[name]
    summed = [{"package": name, **total} for name, total in packages.items()]
    return {
        "lines": sum(row["new"] for row in files),
        "start_up": sum(row["start_up"] for row in files) if baseline is not None else None,
        "executable": sum(row["executable"] for row in files),
        "functions": sum(row["functions"] for row in files),
        "functions_reached": sum(row["functions_reached"] for row in files),
        "packages": sorted(summed, key=lambda row: -row["new"]),
        "files": sorted(files, key=lambda row: (-row["new"], row["file"])),
        "never_files": sorted(never_files, key=lambda row: (-row["lines"], row["file"])),
        "never_functions": sorted(never_functions, key=lambda row: (-row["lines"], row["file"], row["line"])),
    }


def is_reached(function: Function, lines: Set[int]) -> bool:
    """Whether any line of the function's body ran."""
    return not function.lines.isdisjoint(lines)


def _unreached(file: str, function: Function) -> dict[str, Any]:
    return {"file": file, "line": function.first, "function": function.name, "lines": len(function.lines)}


def _package(file: str) -> str:
    """``torch/_inductor/ir.py`` → ``torch._inductor``."""
    parts = file.removesuffix(".py").split("/")
    return ".".join(parts[:3] if parts[:2] == ["torch", "utils"] else parts[:2])
