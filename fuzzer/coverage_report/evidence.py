"""What a campaign's journal says about coverage: who reached what first, and how often what is counted was seen."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal

DOMAINS = ("native", "python", "events")


@dataclass(frozen=True)
class Run:
    """One program that ran. ``coverage`` is what nothing had reached before it."""

    number: int  # of the plan
    at: float  # wall seconds of the campaign
    features: tuple[str, ...]  # realised
    coverage: Coverage

    def new(self, domain: str) -> int:
        return sum(len(ids) for ids in self.coverage.get(domain, {}).values())


@dataclass
class Evidence:
    """A fold over the records ``run``. Memory is bounded by what is covered: each id is in one run only."""

    runs: list[Run] = field(default_factory=list)
    known: KnownCoverage = field(default_factory=KnownCoverage)
    counters: Counter[str] = field(default_factory=Counter)  # "inductor.pattern_matcher_count" → runs that saw it
    kernels: Counter[str] = field(default_factory=Counter)  # kernel class → runs
    operators: Counter[str] = field(default_factory=Counter)  # dispatched packet, "aten.add" → runs

    def apply(self, record: dict[str, Any]) -> None:
        """Take in one record; types other than ``run`` say nothing about coverage."""
        if record.get("t") != "run":
            return
        fresh = self.known.absorb(record.get("coverage", {}))
        realised = tuple(sorted(map(sys.intern, record.get("outcome", {}).get("realised", ()))))
        self.runs.append(Run(int(record.get("n", 0)), float(record.get("at", 0.0)), realised, fresh))
        seen = set()
        for key in record.get("keys", ()):
            domain, _, name = key.partition(":")
            if domain == "events":  # a counter has one key a power of two of its value
                seen.add(name.rpartition("~")[0] or name)
            elif domain == "kernels":
                self.kernels[name] += 1
        self.counters.update(seen)
        self.operators.update(record.get("ops", ()))

    @classmethod
    def of(cls, records: Iterable[dict[str, Any]]) -> Evidence:
        evidence = cls()
        for record in records:
            evidence.apply(record)
        return evidence

    @classmethod
    def read(cls, directory: CampaignDirectory) -> Evidence:
        """From the journal of a campaign, running or not; empty when nothing ran yet."""
        if not directory.journal.exists():
            return cls()
        return cls.of(record for _, record in read_journal(directory.journal))

    def reached(self, domain: str) -> dict[str, set[int]]:
        """File → ids known to the campaign beyond start-up."""
        return {file: set(ids) for file, ids in self.known.as_delta().get(domain, {}).items()}
