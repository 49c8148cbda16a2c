"""Which lines the measured packages have, which are known, and which a child reached.

One byte a line in one flat array over all files: a line's slot is its file's base plus its number. The array must be
allotted before the fork, so all files are read at start (their cached bytecode: about 0.3 s for torch's compiler).
"""

from __future__ import annotations

import importlib.util
import mmap
import os
from bisect import bisect
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import CodeType

from harness.coverage.helper import Unavailable

#: Names a code object: path, first line, name. Code objects that share it (two lambdas on a line) share their lines.
CodeKey = tuple[str, int, str]


class LineTable:
    """Lines of every source file of some packages. What counts as a line is what ``co_lines`` gives.

    Attributes:
        base: path, as ``co_filename`` has it, -> slot of the file's line 0.
        known: a byte a slot; 0 exactly for executable lines that are not known.
        marks: a byte a slot, shared between processes; 1 where a tracer saw a line that was not known.
        total: file, relative to the folder that holds the top-level package -> number of executable lines.

    Raises:
        Unavailable: none of the packages is there.
    """

    def __init__(self, packages: Iterable[str]) -> None:
        self.base: dict[str, int] = {}
        self.total: dict[str, int] = {}
        self._lines: dict[CodeKey, tuple[int, ...]] = {}
        self._spans: list[tuple[int, str]] = []  # (base, file), ascending
        self._slots: dict[str, tuple[int, int]] = {}  # file -> (base, one past the slot of its last line)
        executable: list[int] = []
        size = 0
        for file, path in sorted(set(_sources(packages))):
            lines = self._read(path)
            if not lines:
                continue
            self.base[path] = size
            self.total[file] = len(lines)
            self._spans.append((size, file))
            self._slots[file] = (size, size + max(lines) + 1)
            executable.extend(size + line for line in lines)
            size += max(lines) + 1
        if not size:
            raise Unavailable(f"no Python sources of {', '.join(packages)}")
        self.known = bytearray(b"\1") * size
        for slot in executable:
            self.known[slot] = 0
        self._zeros = bytes(size)
        self.marks = mmap.mmap(-1, size)

    def _read(self, path: str) -> set[int]:
        try:
            module = SourceFileLoader("measured", path).get_code("measured")
        except (OSError, SyntaxError, ValueError):  # a template, or a file for another Python: nothing runs from it
            return set()
        every: set[int] = set()
        waiting = [module] if module else []
        while waiting:
            code = waiting.pop()
            lines = {line for _, _, line in code.co_lines() if line}
            key = (path, code.co_firstlineno, code.co_name)
            self._lines[key] = tuple(sorted(lines.union(self._lines.get(key, ()))))
            every |= lines
            waiting += [constant for constant in code.co_consts if isinstance(constant, CodeType)]
        return every

    def pending(self, code: CodeType) -> set[int]:
        """Lines of a code object that are not known; empty for code outside the packages.

        Includes the first line, which is reached by calling the function.
        """
        base = self.base.get(code.co_filename)
        if base is None:
            return set()
        lines = self._lines.get((code.co_filename, code.co_firstlineno, code.co_name), ())
        known = self.known
        return {line for line in (code.co_firstlineno, *lines) if not known[base + line]}

    def learn(self, lines: dict[str, Iterable[int]]) -> None:
        """Take these as known. Unknown files and lines are ignored."""
        for file, numbers in lines.items():
            base, end = self._slots.get(file, (0, 0))
            for number in numbers:
                if 0 < number < end - base:
                    self.known[base + number] = 1

    def clear(self) -> None:
        """Forget all marks."""
        self.marks[:] = self._zeros

    def marked(self) -> dict[str, list[int]]:
        """File -> its lines that are marked and not known, ascending."""
        found: dict[str, list[int]] = {}
        for slot in _nonzero(bytes(self.marks)):
            if not self.known[slot]:
                base, file = self._spans[bisect(self._spans, slot, key=_base) - 1]
                found.setdefault(file, []).append(slot - base)
        return found


def _base(span: tuple[int, str]) -> int:
    return span[0]


def _nonzero(data: bytes) -> Iterator[int]:
    slot = data.find(1)
    while slot >= 0:
        yield slot
        slot = data.find(1, slot + 1)


def _sources(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """(path relative to the folder of the top-level package, path) of every source file."""
    for package in packages:
        try:
            spec = importlib.util.find_spec(package)
        except ModuleNotFoundError:
            continue
        if spec is None:
            continue
        if spec.submodule_search_locations:
            folder = next(iter(spec.submodule_search_locations))
            root = _parent(folder, package.count(".") + 1)
            for where, _, names in os.walk(folder):
                for name in names:
                    if name.endswith(".py"):
                        path = os.path.join(where, name)
                        yield os.path.relpath(path, root).replace(os.sep, "/"), path
        elif spec.origin and spec.origin.endswith(".py"):
            root = _parent(spec.origin, package.count(".") + 1)
            yield os.path.relpath(spec.origin, root).replace(os.sep, "/"), spec.origin


def _parent(path: str, levels: int) -> str:
    for _ in range(levels):
        path = os.path.dirname(path)
    return path
