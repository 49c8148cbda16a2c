"""The part of a report about C++: functions by namespace, the newest, and the kernels that nothing reached."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from typing import Any

from fuzzer.coverage_report.cxx_names import COLD, namespace, short
from fuzzer.coverage_report.elf import ElfFile
from fuzzer.coverage_report.evidence import Run
from fuzzer.coverage_report.target_files import TargetFiles

#: Where the kernels are; of other namespaces it says little which functions were never reached.
_KERNELS = "at::native"


@dataclass(frozen=True)
class Library:
    """One library's functions. ``starts`` are those that coverage arms, ascending; ids outside are basic blocks."""

    name: str
    starts: tuple[int, ...]
    names: Mapping[int, bytes]  # offset → mangled name, where a symbol table has one

    def namespaces(self) -> dict[int, str]:
        """Offset of each function start → its namespace."""
        return {start: namespace(self.names.get(start, b"")) for start in self.starts}


def read_libraries(files: TargetFiles, names: Iterable[str]) -> dict[str, Library]:
    """The libraries of those names that the target has and that list their functions (about 1 s for libtorch_cpu).

    Raises:
        UserError: a library that is there cannot be read.
    """
    found = {}
    for name in names:
        path = files.library(name)
        if path is None:
            continue
        with ElfFile(path) as file:
            starts = tuple(file.function_starts())
            if starts:
                found[name] = Library(name, starts, file.function_symbols())
    return found


def native_part(
    reached: Mapping[str, Set[int]],
    baseline: Mapping[str, Set[int]] | None,
    libraries: Mapping[str, Library],
    runs: Iterable[Run],
    demangle: Callable[[bytes], str],
    newest: int = 100,
) -> dict[str, Any]:
    """``{functions, blocks, start_up, libraries, namespaces, newest, never_kernels, kernels, kernels_reached}``.

    Rows of namespaces: ``namespace, new, start_up, functions``. A kernel is a function of ``at::native`` as the source
    has it: all its instances, for types and for vector instructions, are one, and one that was reached is enough.
    ``newest`` rows: ``name, namespace, library, run, seconds``, the latest first.
    """
    start = baseline or {}
    rows: dict[str, Counter[str]] = {}
    per_library: list[dict[str, Any]] = []
    blocks = 0
    instances: Counter[str] = Counter()
    seen: Counter[str] = Counter()
    spaces: dict[str, dict[int, str]] = {}
    for name in sorted(reached.keys() | libraries.keys()):
        new, begun = set(reached.get(name, ())), set(start.get(name, ()))
        library = libraries.get(name)
        if library is None:
            per_library.append({"library": name, "new": len(new), "start_up": len(begun), "functions": 0})
            continue
        spaces[name] = library.namespaces()
        blocks += len(new - spaces[name].keys())
        new, begun = new & spaces[name].keys(), begun & spaces[name].keys()
        per_library.append({"library": name, "new": len(new), "start_up": len(begun), "functions": len(library.starts)})
        for offset, space in spaces[name].items():
            row = rows.setdefault(space, Counter())
            row["functions"] += 1
            row["new"] += int(offset in new)
            row["start_up"] += int(offset in begun)
            if space == _KERNELS:
                kernel = short(demangle(library.names[offset]))
                if kernel.startswith(f"{_KERNELS}::"):
                    instances[kernel] += 1
                    seen[kernel] += int(offset in new or offset in begun)
    never: list[dict[str, Any]] = [
        {"name": name, "instances": count} for name, count in instances.items() if not seen[name]
    ]
    spaced: list[dict[str, Any]] = [
        {"namespace": name, **{key: row[key] for key in ("new", "start_up", "functions")}} for name, row in rows.items()
    ]
    return {
        "functions": sum(row["new"] for row in per_library),
        "blocks": blocks,
        "start_up": sum(row["start_up"] for row in per_library) if baseline is not None else None,
        "libraries": per_library,
        "namespaces": sorted(spaced, key=lambda row: (-row["new"], row["namespace"])),
        "newest": _newest(runs, libraries, spaces, demangle, newest),
        "kernels": len(instances),
        "kernels_reached": len(instances) - len(never),
        "never_kernels": sorted(never, key=lambda row: (-row["instances"], row["name"])),
    }


def _newest(
    runs: Iterable[Run],
    libraries: Mapping[str, Library],
    spaces: Mapping[str, Mapping[int, str]],
    demangle: Callable[[bytes], str],
    most: int,
) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for run in reversed(list(runs)):
        for name, offsets in run.coverage.get("native", {}).items():
            for offset in offsets:
                space = spaces.get(name, {}).get(offset, COLD)
                if space == COLD:  # of no interest here, and basic blocks have no name
                    continue
                mangled = libraries[name].names.get(offset, b"")
                text = short(demangle(mangled)) if mangled else f"{name}+{offset:#x}"
                found.append(
                    {"name": text, "namespace": space, "library": name, "run": run.number, "seconds": round(run.at, 1)}
                )
        if len(found) >= most:
            break
    return found[:most]
