"""Everything the loop knows, as one object that is a pure fold over the journal.

``apply`` is the only way to change it while running *and* while resuming: a resumed campaign is the snapshot plus the
journal's later records, put through the same code.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.engines.idioms import Knowledge
from fuzzer.engines.mutate import MUTATIONS
from fuzzer.engines.wishes import askable
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.combinations import Combinations
from fuzzer.policy.corpus import Corpus, Seed
from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.policy.plan import Order, Outcome, Plan
from fuzzer.policy.schedule import Schedule


@dataclass
class Bucket:
    """All suspects of one major signature. ``state``: new | confirmed | debatable | flaky | dismissed | known."""

    state: str = "new"
    count: int = 0
    finding: str = ""  # major signature of the finding it led to (after reduction)
    program: str = ""  # id of a stored program that waits for triage, while the state is new


@dataclass
class Counters:
    """Numbers of the whole campaign, over all its runs."""

    runs: int = 0
    valid: int = 0
    refused: int = 0  # eager refuses, compiled accepts: valid programs for the oracle, counted apart
    as_meant: int = 0  # eager refuses what was written for it to refuse: neither valid nor invalid
    invalid: int = 0
    harness_errors: int = 0
    suspects: int = 0
    dismissed: int = 0
    unwritten: int = 0  # plans that no engine could turn into a program
    asked: int = 0  # features asked of programs, and how many were realised
    realised: int = 0
    seconds: float = 0.0  # of all executions
    triage_seconds: float = 0.0
    kernels: int = 0  # generated kernels, those among them taken from the store, and CPU seconds of the rest
    kernels_reused: int = 0
    kernel_seconds: float = 0.0
    interpreted: int = 0  # programs whose kernels were, and those that looked wrong so and were not
    interpreted_withdrawn: int = 0
    audits: int = 0  # programs run with the plain toolchain as well, and those on which it judged otherwise
    audits_differing: int = 0
    run_time: float = 0.0  # wall time of earlier runs and of this one, up to the last record
    last_find: float = 0.0  # wall time (of the campaign) at which coverage last grew
    last_crash: float = 0.0
    kinds: dict[str, int] = field(default_factory=dict)
    findings: dict[str, int] = field(default_factory=dict)  # state → number


class LoopState:
    """Schedule, corpus, coverage, buckets, counters."""

    def __init__(
        self,
        operators: Operators,
        space: FeatureSpace,
        seed: int,
        *,
        targets: int = 1,
        knowledge: Knowledge | None = None,
        raised: Mapping[str, float] | None = None,
    ) -> None:
        """
        Args:
            knowledge: sources that are switched on; all by default.
            raised: arm → factor on its prior (what changed in the compiler); names that are no arm are left out.
        """
        self.operators = operators
        self.space = space
        self.knowledge = knowledge or Knowledge()
        self.raised = dict(raised or {})
        families = operators.choosable()
        self._arms = (list(families), families, sorted(self.knowledge.mutations(MUTATIONS)))
        self._entries = {entry.id: entry for entry in self.knowledge.entries()}
        self._weights = {name: entry.weight for name, entry in self._entries.items()}
        self.schedule = Schedule(space, *self._arms, seed, askable=askable(), entries=self._weights, targets=targets)
        self.schedule.raise_priors(self.raised)
        self.corpus = Corpus()
        self.known = KnownCoverage()
        self.pairs = Combinations(space.features)
        self.counters = Counters()
        self.executed: set[str] = set()  # dispatched operators, "aten.add"
        self.used: set[str] = set()  # catalogue operators
        self.buckets: dict[str, Bucket] = {}
        self.per_engine: dict[str, list[int]] = {}  # engine → [runs, valid, asked, realised]

    # -- journal records ------------------------------------------------------------------------------------------

    def plan(self, offer: Mapping[str, Any] | None = None) -> Plan:
        """Make the next plan (record ``plan``). ``offer``: ``{"order": …, "always": bool}``, where the language model
        has an answer ready."""
        if offer is None:
            return self.schedule.next(self.corpus)
        return self.schedule.next(self.corpus, Order.from_map(offer["order"]), bool(offer["always"]))

    def order(self, arms: Sequence[str]) -> Order:
        """What the language model should write next (record ``order``)."""
        return self.schedule.order(self.corpus, arms)

    def apply(self, record: Mapping[str, Any]) -> None:
        """Take in one record of the journal. Unknown types are skipped: they are of a newer Eddy."""
        kind = record.get("t")
        if kind == "plan":
            self.plan(record.get("llm"))
        elif kind == "order":
            self.order(record["arms"])
        elif kind == "advice":
            self.schedule.advise(record["factors"])
        elif kind == "run":
            self._apply_run(record)
        elif kind == "seed":
            self.corpus.add(Seed.from_map(record["seed"]))
        elif kind == "bucket":
            self._apply_bucket(record)
        elif kind == "sure":
            self._apply_sure(record)
        elif kind == "unwritten":
            outcome = Outcome.from_map(record["outcome"])
            self.counters.unwritten += 1
            self.counters.harness_errors += outcome.kind == "harness_error"
            self.schedule.learn(outcome)

    def _apply_run(self, record: Mapping[str, Any]) -> None:
        counters = self.counters
        outcome = Outcome.from_map(record["outcome"])
        counters.runs += 1
        counters.kinds[outcome.kind] = counters.kinds.get(outcome.kind, 0) + 1
        valid = bool(record["valid"])
        counters.valid += valid
        as_meant = bool(record.get("refused"))
        counters.as_meant += as_meant
        counters.invalid += outcome.kind == "invalid" and not as_meant
        counters.refused += outcome.kind == "missing_check"
        counters.harness_errors += outcome.kind == "harness_error"
        counters.seconds += record["seconds"]
        counters.run_time = max(counters.run_time, record["at"])
        step = record.get("cxx", {})
        counters.kernels += step.get("kernels", 0)
        counters.kernels_reused += step.get("reused", 0)
        counters.kernel_seconds += step.get("cpu", 0.0)
        interpreted = record.get("interpreted", {})
        counters.interpreted += bool(interpreted.get("kernels"))
        counters.interpreted_withdrawn += bool(interpreted.get("cleared"))
        counters.audits += bool(record.get("audit"))
        counters.audits_differing += record.get("audit") == "other"
        self.known.absorb(record.get("coverage", {}))
        if outcome.new_coverage:
            counters.last_find = record["at"]
        if valid:
            self.pairs.absorb(outcome.realised)
            self.corpus.observe(record.get("keys", ()))
            self.executed.update(record.get("ops", ()))
            self.used.update(outcome.operators)
        asked = () if as_meant else outcome.plan.features  # what eager refuses leaves no facts of its run
        realised = sum(feature in outcome.realised for feature in asked)
        counters.asked += len(asked)
        counters.realised += realised
        engine = self.per_engine.setdefault(outcome.plan.engine, [0, 0, 0, 0])
        for position, amount in enumerate((not as_meant, valid, len(asked), realised)):
            engine[position] += amount
        self.schedule.learn(outcome)

    def _apply_bucket(self, record: Mapping[str, Any]) -> None:
        bucket = self.buckets.setdefault(record["major"], Bucket())
        bucket.count += record.get("count", 1)
        state = record.get("state", bucket.state)
        if state != bucket.state:
            findings = self.counters.findings
            if record.get("new"):
                findings[state] = findings.get(state, 0) + 1
                self.counters.last_crash = record.get("at", self.counters.last_crash)
            self.counters.dismissed += state == "dismissed"
            bucket.state = state
        bucket.finding = record.get("finding", bucket.finding)
        bucket.program = record.get("program", bucket.program) if bucket.state == "new" else ""
        self.counters.suspects += record.get("count", 1)
        self.counters.triage_seconds += record.get("triage", 0.0)
        self.counters.run_time = max(self.counters.run_time, record.get("at", 0.0))

    def _apply_sure(self, record: Mapping[str, Any]) -> None:
        """More fresh processes were asked for a finding that counted as ``was``; it may turn out to be flaky."""
        self.counters.triage_seconds += record.get("triage", 0.0)
        if state := record.get("state"):
            findings = self.counters.findings
            findings[record["was"]] = max(0, findings.get(record["was"], 0) - 1)
            findings[state] = findings.get(state, 0) + 1
            for bucket in self.buckets.values():
                if bucket.finding == record["finding"]:
                    bucket.state = state

    def waiting(self) -> list[tuple[str, str]]:
        """(major signature, program id) of suspects that had to wait for triage, the oldest first."""
        return [(major, item.program) for major, item in self.buckets.items() if item.program]

    # -- questions ------------------------------------------------------------------------------------------------

    def news_of(self, coverage: Coverage, realised: Iterable[str]) -> tuple[Coverage, list[str]]:
        """What of an execution's coverage, and which pairs of features, were never seen. Changes nothing."""
        return self.known.unknown(coverage), self.pairs.unseen(realised)

    @property
    def valid_rate(self) -> float:
        return self.counters.valid / max(1, self.counters.runs - self.counters.as_meant)

    @property
    def conformity(self) -> float:
        return self.counters.realised / max(1, self.counters.asked)

    def realised_entries(self, named: Iterable[str], realised: frozenset[str]) -> tuple[str, ...]:
        """Of the bug patterns and subgraphs that went into a program: those whose features it still has.

        What eager refuses leaves no facts of its run, so there the name alone counts.
        """
        found = (self._entries[name] for name in dict.fromkeys(named) if name in self._entries)
        return tuple(entry.id for entry in found if entry.refused or realised.issuperset(entry.brings))

    def family_of(self, aten: str) -> str:
        return self.operators.family_of_aten(aten)

    # -- snapshot ---------------------------------------------------------------------------------------------------

    def to_map(self) -> dict[str, Any]:
        return {
            "schedule": self.schedule.to_map(),
            "corpus": self.corpus.to_map(),
            "known": self.known.to_map(),
            "pairs": self.pairs.to_map(),
            "counters": {name: getattr(self.counters, name) for name in self.counters.__dataclass_fields__},
            "executed": sorted(self.executed),
            "used": sorted(self.used),
            "buckets": {major: [b.state, b.count, b.finding, b.program] for major, b in self.buckets.items()},
            "per_engine": self.per_engine,
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take the state that ``to_map`` wrote; knowledge may have grown since."""
        self.schedule = Schedule.from_map(
            data["schedule"], self.space, *self._arms, askable=askable(), entries=self._weights
        )
        self.schedule.raise_priors(self.raised)
        self.corpus = Corpus.from_map(data["corpus"])
        self.known = KnownCoverage.from_map(data["known"])
        if data["pairs"]["features"] == self.pairs.features:
            self.pairs = Combinations.from_map(data["pairs"])
        fields = self.counters.__dataclass_fields__
        self.counters = Counters(**{name: value for name, value in data["counters"].items() if name in fields})
        self.executed = set(data["executed"])
        self.used = set(data["used"])
        self.buckets = {major: Bucket(*parts) for major, parts in data["buckets"].items()}
        self.per_engine = {engine: list(numbers) for engine, numbers in data["per_engine"].items()}


def event_coverage(counters: Mapping[str, int], kernels: Iterable[str]) -> tuple[Coverage, list[str]]:
    """Compiler events as coverage ids, and as the corpus's always-observable keys.

    A counter counts by the power of two of its value (one fusion, two, four, …), as AFL buckets hit counts.
    """
    files: dict[str, set[int]] = {"counter": set(), "kernel": set()}
    keys = []
    for name, value in counters.items():
        if value <= 0:
            continue
        text = f"{name}~{int(value).bit_length()}"
        files["counter"].add(zlib.crc32(text.encode()))
        keys.append(f"events:{text}")
    for kernel in kernels:
        files["kernel"].add(zlib.crc32(kernel.encode()))
        keys.append(f"kernels:{kernel}")
    found = {file: sorted(ids) for file, ids in files.items() if ids}
    return ({"events": found} if found else {}), sorted(set(keys))
