"""What a campaign covered in the formats of other tools: coverage.py's data file, and lcov's tracefile."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from fuzzer.coverage_report.assemble import Covered
from fuzzer.coverage_report.cxx_names import namespace
from fuzzer.coverage_report.native_part import Library
from fuzzer.exits import UserError
from fuzzer.store import atomic

#: Names of coverage.py's contexts (``coverage html --show-contexts``).
START_UP, CAMPAIGN = "start-up", "campaign"


def write_coverage_py(covered: Covered, path: Path) -> int:
    """Write a data file that ``coverage report`` and ``coverage html`` read; returns the number of lines in it.

    Lines that runs of the campaign reached have the context ``campaign``, those of start-up ``start-up``. Lines that
    run on import are not measured, so they show as missed.

    Raises:
        UserError: ``coverage`` is not installed, the target's files are not there, or the file cannot be written.
    """
    try:
        from coverage import CoverageData
        from coverage.exceptions import CoverageException
    except ImportError:
        raise UserError("--coverage-py needs the package coverage; pip install 'eddyfuzz[coverage]'") from None
    files = covered.files
    if files is None:
        raise UserError(f"--coverage-py needs the target's sources: {covered.notes[-1]}")
    temporary = atomic.temporary_beside(path.absolute())
    count = 0
    try:
        data = CoverageData(basename=str(temporary))
        contexts = [(START_UP, covered.start_up_of("python") or {}), (CAMPAIGN, covered.evidence.reached("python"))]
        for context, lines in contexts:
            data.set_context(context)
            here = {str(files.source(file)): sorted(ids) for file, ids in lines.items() if files.source(file).is_file()}
            data.add_lines(here)
            count += sum(map(len, here.values()))
        data.write()
        data.close()
        temporary.replace(path)
    except (OSError, CoverageException) as error:
        raise UserError(f"{path}: cannot be written ({error}); choose another path") from None
    finally:
        temporary.unlink(missing_ok=True)
    return count


def write_lcov(covered: Covered, path: Path) -> tuple[int, int]:
    """Write an lcov tracefile of native functions; returns (functions reached, functions).

    A release build has no line tables: a source file is a namespace in a library (``libtorch_cpu.so/at/native``) and a
    line the number of a function in it. Names are mangled, as ``genhtml --demangle-cpp`` wants them. A count is 1 for
    what was reached, with start-up where it was measured. Parts that the compiler split off (``.cold``) are left out.

    Raises:
        UserError: the target's libraries are not there, or the file cannot be written.
    """
    if not covered.libraries:
        why = covered.notes[-1] if covered.notes else "none lists its functions"
        raise UserError(f"--lcov needs the target's libraries: {why}")
    reached = covered.all_of("native")
    hit = total = 0
    temporary = atomic.temporary_beside(path.absolute())
    try:
        with open(temporary, "w", encoding="utf-8") as stream:
            stream.write("TN:eddy\n")
            for library in covered.libraries.values():
                for source, functions in sorted(_by_namespace(library).items()):
                    ran = [offset in reached.get(library.name, ()) for offset, _ in functions]
                    stream.write(f"SF:{source}\n")
                    stream.writelines(f"FN:{line},{name}\n" for line, (_, name) in enumerate(functions, 1))
                    stream.writelines(f"FNDA:{int(was)},{name}\n" for was, (_, name) in zip(ran, functions))
                    stream.write(f"FNF:{len(functions)}\nFNH:{sum(ran)}\n")
                    stream.writelines(f"DA:{line},{int(was)}\n" for line, was in enumerate(ran, 1))
                    stream.write(f"LF:{len(functions)}\nLH:{sum(ran)}\nend_of_record\n")
                    hit += sum(ran)
                    total += len(functions)
        temporary.replace(path)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another path") from None
    finally:
        temporary.unlink(missing_ok=True)
    return hit, total


def _by_namespace(library: Library) -> dict[str, list[tuple[int, str]]]:
    """Source → (offset, name) of its functions, each name once: lcov tells functions by name."""
    found: dict[str, list[tuple[int, str]]] = {}
    for offset, name in _named(library):
        space = namespace(library.names.get(offset, b"")).replace("::", "/")
        found.setdefault(f"{library.name}.so/{space.strip('()').replace(' ', '_')}", []).append((offset, name))
    return found


def _named(library: Library) -> Iterator[tuple[int, str]]:
    taken: set[str] = set()
    for offset in library.starts:
        mangled = library.names.get(offset, b"")
        if b".cold" in mangled:
            continue
        name = mangled.decode(errors="replace") or f"{library.name}+{offset:#x}"
        if name in taken:  # local functions of several files may share a name
            name = f"{name}@{offset:#x}"
        taken.add(name)
        yield offset, name
