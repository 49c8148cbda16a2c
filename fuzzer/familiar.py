"""Suspects that probably are a finding again: they wait behind the others. Pure.

A silent fault's first signature is the set of operators of the whole program, so one bug of one operator makes a new
suspect in every program that calls it; only reduction tells that they are the same, and takes most of triage's time.
"""

from __future__ import annotations

from collections.abc import Iterable

from fuzzer.finding import Finding
from fuzzer.signature import culprits


class Familiar:
    """What findings need, by stage and kind."""

    def __init__(self, findings: Iterable[Finding] = ()) -> None:
        self._needed: dict[tuple[str, str], set[frozenset[str]]] = {}
        for finding in findings:
            self.add(finding)

    def add(self, finding: Finding) -> None:
        """From now on, a suspect of its kind with all operators of its reduced program is familiar."""
        needed = culprits(finding.operators)
        if needed and finding.reduced:
            self._needed.setdefault((finding.stage, finding.kind.value), set()).add(needed)

    def knows(self, major: str) -> bool:
        """Is a suspect with this major signature (``run|wrong_value|add,argmin,mul``) probably one of the findings?"""
        stage, _bar, rest = major.partition("|")
        kind, _bar, operators = rest.partition("|")
        has = frozenset(operators.split(","))
        return any(needed <= has for needed in self._needed.get((stage, kind), ()))
