"""Line coverage of C++ that was built with ``--coverage`` (gcc): counters that each child writes, read by ``gcov``.

Works on whatever instrumented libraries a program loads, and on an instrumented torch. A child that is killed or
crashes writes no counters, so it reports nothing here.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
from collections.abc import Iterable, Iterator

from harness.coverage import symbols
from harness.coverage.helper import Unavailable

#: Functions that write a library's counters, the best first. gcc links the first only where something calls it.
_DUMPS = (b"__gcov_dump", b"__gcov_exit")
#: One call of ``gcov`` reads so many files; an instrumented torch has thousands.
_BATCH = 200
_TIMEOUT = 300.0
#: Sources of the system are nobody's to cover.
_SYSTEM = ("/usr/include/", "/usr/lib/")


class GcovCoverage:
    """Made once in the fork server. Files are absolute paths of sources, ids are line numbers."""

    name = "gcov"

    def __init__(self) -> None:
        self._known: dict[str, set[int]] = {}
        self._dumps: dict[str, int] = {}  # library -> offset of the function that writes its counters; 0: none
        self._gcov = ""

    def start(self) -> None:
        """Look for ``gcov``, and through the libraries that are loaded.

        Raises:
            Unavailable: no ``gcov`` on PATH, or one that writes no JSON (before gcc 9).
        """
        self._gcov = shutil.which("gcov") or ""
        if not self._gcov:
            raise Unavailable("no gcov on PATH")
        try:
            said = subprocess.run([self._gcov, "--help"], capture_output=True, text=True, timeout=60, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unavailable(f"{self._gcov} does not run: {error}") from None
        if "--json-format" not in said.stdout or "--stdout" not in said.stdout:
            raise Unavailable(f"{self._gcov} writes no JSON; gcc 9 or newer does")
        for path, _ in _libraries():
            self._dumps[path] = symbols.find_function(path, _DUMPS)

    def mark_known(self, lines: dict[str, Iterable[int]]) -> None:
        """Never report these again."""
        for file, numbers in lines.items():
            self._known.setdefault(file, set()).update(numbers)

    def child_start(self, folder: str) -> None:
        """In the child that is measured: counters go below ``folder``, which it may write to."""
        os.environ["GCOV_PREFIX"] = _place(folder)
        os.environ.pop("GCOV_PREFIX_STRIP", None)

    def child_end(self) -> None:
        """In the child, after its last stage: write the counters (a child leaves by ``_exit``, which does not)."""
        for path, base in _libraries():
            offset = self._dumps[path] if path in self._dumps else symbols.find_function(path, _DUMPS)
            if offset:
                ctypes.CFUNCTYPE(None)(base + offset)()

    def harvest(self, folder: str) -> dict[str, list[int]]:
        """File -> lines that the child reached and nothing before it, ascending. They become known."""
        found: dict[str, set[int]] = {}
        data = list(_counters(_place(folder)))
        for low in range(0, len(data), _BATCH):
            for file, lines in self._read(data[low : low + _BATCH], _place(folder)):
                found.setdefault(file, set()).update(lines)
        fresh = {file: sorted(lines - self._known.get(file, set())) for file, lines in found.items()}
        fresh = {file: lines for file, lines in fresh.items() if lines}
        self.mark_known(dict(fresh))
        return fresh

    def _read(self, data: list[str], place: str) -> Iterator[tuple[str, set[int]]]:
        """What ``gcov`` makes of some files of counters; nothing where it fails, as on files of another compiler."""
        command = [self._gcov, "--json-format", "--stdout", *data]
        try:
            done = subprocess.run(command, capture_output=True, timeout=_TIMEOUT, check=False, cwd=place)
        except (OSError, subprocess.TimeoutExpired):
            return
        for line in done.stdout.splitlines():
            try:
                report = json.loads(line)
            except ValueError:
                continue
            for item in report.get("files", ()):
                file = os.path.normpath(os.path.join(report.get("current_working_directory", "/"), item["file"]))
                lines = {row["line_number"] for row in item["lines"] if row["count"] > 0}
                if lines and not file.startswith(_SYSTEM):
                    yield file, lines


def _place(folder: str) -> str:
    return os.path.join(folder, "gcov")


def _counters(place: str) -> Iterator[str]:
    """Paths of the files of counters, each with its notes put beside it: they lie where the object was compiled."""
    for where, _, names in os.walk(place):
        for name in names:
            if name.endswith(".gcda"):
                notes = os.path.join(where, name[: -len("gcda")] + "gcno")
                original = "/" + os.path.relpath(notes, place)
                if os.path.exists(original) and not os.path.lexists(notes):
                    os.symlink(original, notes)
                yield os.path.join(where, name)


def _libraries() -> Iterator[tuple[str, int]]:
    """(path, load base) of the shared objects of this process."""
    seen = set()
    with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
        for line in maps:
            fields = line.split(None, 5)
            if len(fields) == 6 and ".so" in fields[5] and int(fields[2], 16) == 0:
                path = fields[5].rstrip("\n")
                if path not in seen and os.path.exists(path):
                    seen.add(path)
                    yield path, int(fields[0].partition("-")[0], 16)
