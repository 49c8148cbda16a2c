"""Basic blocks for a campaign: of the functions that it reached, found in batches, one level below functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from fuzzer.coverage_blocks import find_blocks
from fuzzer.policy.known_coverage import Coverage

#: Functions reached since the last batch that make another worth its second: the library's tables are read anew.
BATCH = 300


class BlockFinder:
    """Takes native coverage, gives addresses to arm. A function is disassembled once."""

    def __init__(self, library: Callable[[str], Path | None]) -> None:
        """``library`` gives the file of ``libtorch_cpu``, a name in the domain ``native``; None where there is none."""
        self._library = library
        self._seen: dict[str, set[int]] = {}
        self._waiting: dict[str, set[int]] = {}

    def take(self, fresh: Coverage) -> None:
        """Functions that were reached, and blocks, of which nothing more is to be found."""
        for library, ids in fresh.get("native", {}).items():
            new = set(ids) - self._seen.setdefault(library, set())
            self._seen[library] |= new
            self._waiting.setdefault(library, set()).update(new)

    @property
    def waiting(self) -> int:
        return sum(map(len, self._waiting.values()))

    @property
    def due(self) -> bool:
        """Does enough wait to be worth a batch?"""
        return self.waiting >= BATCH

    def batch(self) -> dict[str, list[int]]:
        """Library → starts of blocks of all that waits, ascending; functions not understood have none.

        Raises:
            UserError: capstone is missing, or a library is not code for x86-64.
        """
        waiting, self._waiting = self._waiting, {}
        return {library: found for library, found in self._found(waiting) if found}

    def _found(self, waiting: Mapping[str, set[int]]) -> list[tuple[str, list[int]]]:
        paths = {library: self._library(library) for library in waiting}
        blocks = {library: find_blocks(path, waiting[library]).addresses for library, path in paths.items() if path}
        for library, addresses in blocks.items():
            self._seen[library].update(addresses)
        return list(blocks.items())
