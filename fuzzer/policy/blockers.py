"""Blockers: one bucket of suspects that eats the campaign, and the arms that lead to it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: A bucket above this share of runs is a blocker; below half of it, it is none any more.
SHARE = 0.01
_WINDOW = 1000.0  # runs, exponentially forgotten
_EVIDENCE = 8.0  # recent hits before anything is said of a bucket
_PRESENT = 0.8  # an arm is to blame when it is present in this share of a bucket's runs …
_LIFT = 3.0  # … and this many times more often there than anywhere
_FACTOR = 0.25
_BUCKETS = 64
_ARMS = 400  # arms counted per bucket


class Blockers:
    """Recent hits per bucket, and which arms its runs had in common. Bounded in buckets and in arms.

    Forgetting costs nothing: instead of shrinking every old count by 1 − 1/1000 a run, the weight of a new run grows
    by the inverse; only ratios are ever read, and all counts are scaled back before the weight overflows.
    """

    def __init__(self) -> None:
        self.weight = 1.0  # of the next run
        self.runs = 0.0
        self.hits: dict[str, float] = {}
        self.arms: dict[str, dict[str, float]] = {}  # bucket → arm → weight of its runs
        self.everywhere: dict[str, float] = {}  # arm → weight of all its runs
        self.active: dict[str, list[str]] = {}  # blocker → arms down-weighted for it

    def observe(self, bucket: str, arms: Iterable[str]) -> None:
        """One run with the arms that took part; ``bucket`` "" for a run that was no suspect."""
        names = sorted(set(arms))
        weight = self.weight
        self.runs += weight
        for arm in names:
            self.everywhere[arm] = self.everywhere.get(arm, 0.0) + weight
        if bucket:
            if bucket not in self.hits and len(self.hits) >= _BUCKETS:
                rarest = min(self.hits, key=lambda name: (self.hits[name], name))
                del self.hits[rarest], self.arms[rarest]
            self.hits[bucket] = self.hits.get(bucket, 0.0) + weight
            counts = self.arms.setdefault(bucket, {})
            for arm in names:
                if arm in counts or len(counts) < _ARMS:
                    counts[arm] = counts.get(arm, 0.0) + weight
        self.weight /= 1.0 - 1.0 / _WINDOW
        if self.weight > 1e100:
            self._rescale()

    def _rescale(self) -> None:
        for counts in (self.hits, self.everywhere, *self.arms.values()):
            for name in counts:
                counts[name] /= self.weight
        self.runs /= self.weight
        self.weight = 1.0

    def share(self, bucket: str) -> float:
        """Share of recent runs that ended in this bucket."""
        return self.hits.get(bucket, 0.0) / self.runs if self.runs else 0.0

    def review(self) -> list[tuple[str, str, float]]:
        """Changes to make, as (blocker, arm, factor); a factor of 1.0 lifts an earlier one."""
        changes: list[tuple[str, str, float]] = []
        for bucket in [name for name in self.active if self.share(name) < SHARE / 2]:
            changes += [(bucket, arm, 1.0) for arm in self.active.pop(bucket)]
        for bucket, hits in self.hits.items():
            share = hits / self.runs
            if hits < _EVIDENCE * self.weight or share <= SHARE:
                continue
            held = self.active.setdefault(bucket, [])
            held.extend(
                arm
                for arm, count in self.arms[bucket].items()
                if arm not in held
                and count >= _PRESENT * hits
                and count / hits >= _LIFT * self.everywhere[arm] / self.runs
            )
            changes += [(bucket, arm, max(_FACTOR, SHARE / share)) for arm in held]
        return changes

    def to_map(self) -> dict[str, Any]:
        return {
            "weight": self.weight,
            "runs": self.runs,
            "hits": dict(self.hits),
            "arms": {bucket: dict(counts) for bucket, counts in self.arms.items()},
            "everywhere": dict(self.everywhere),
            "active": {bucket: list(arms) for bucket, arms in self.active.items()},
        }

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Blockers:
        blockers = cls()
        blockers.weight, blockers.runs = data["weight"], data["runs"]
        blockers.hits, blockers.everywhere = dict(data["hits"]), dict(data["everywhere"])
        blockers.arms = {bucket: dict(counts) for bucket, counts in data["arms"].items()}
        blockers.active = {bucket: list(arms) for bucket, arms in data["active"].items()}
        return blockers
