"""What the campaign has covered: one set of ids per domain and file, and the part of a delta that is new."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Coverage = dict[str, dict[str, list[int]]]  # domain → file → ids


class KnownCoverage:
    """The campaign's global sets. Several workers report the same id before it is disarmed everywhere: only the
    first report is new."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, set[int]]] = {}
        self._totals: dict[str, int] = {}

    def absorb(self, delta: Mapping[str, Mapping[str, Iterable[int]]]) -> Coverage:
        """Add a delta; return the part of it that was unknown, with sorted ids and no empty entries."""
        fresh: Coverage = {}
        for domain, files in delta.items():
            for file, ids in files.items():
                known = self._known.setdefault(domain, {}).setdefault(file, set())
                new = set(ids) - known
                if new:
                    known |= new
                    fresh.setdefault(domain, {})[file] = sorted(new)
                    self._totals[domain] = self._totals.get(domain, 0) + len(new)
        return fresh

    def unknown(self, delta: Mapping[str, Mapping[str, Iterable[int]]]) -> Coverage:
        """What ``absorb`` would return; changes nothing."""
        fresh: Coverage = {}
        for domain, files in delta.items():
            known = self._known.get(domain, {})
            for file, ids in files.items():
                new = set(ids) - known.get(file, frozenset())
                if new:
                    fresh.setdefault(domain, {})[file] = sorted(new)
        return fresh

    @property
    def totals(self) -> dict[str, int]:
        """Domain → number of ids known."""
        return dict(self._totals)

    def files(self, domain: str) -> dict[str, int]:
        """File → number of ids known in it."""
        return {file: len(ids) for file, ids in self._known.get(domain, {}).items() if ids}

    def as_delta(self) -> Coverage:
        """Everything, in the form of a delta: what a new fork server is told not to arm."""
        return {
            domain: {file: sorted(ids) for file, ids in files.items() if ids}
            for domain, files in self._known.items()
            if self._totals.get(domain)
        }

    def to_map(self) -> dict[str, Any]:
        """Sorted ids as differences: small numbers, one byte each in msgpack where ids are dense."""
        return {
            domain: {file: _differences(ids) for file, ids in files.items()}
            for domain, files in self.as_delta().items()
        }

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> KnownCoverage:
        known = cls()
        known.absorb({domain: {file: _sums(steps) for file, steps in files.items()} for domain, files in data.items()})
        return known


def count(delta: Mapping[str, Mapping[str, Iterable[int]]]) -> dict[str, int]:
    """Domain → number of ids in a delta."""
    return {domain: sum(len(list(ids)) for ids in files.values()) for domain, files in delta.items()}


def _differences(ids: list[int]) -> list[int]:
    return [value - previous for previous, value in zip([0, *ids], ids)]


def _sums(steps: Iterable[int]) -> list[int]:
    total, ids = 0, []
    for step in steps:
        total += step
        ids.append(total)
    return ids
