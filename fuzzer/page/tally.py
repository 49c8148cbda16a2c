"""What only the journal's runs tell: per feature, how often it was asked and realised."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass
class FeatureCount:
    """``asked`` of programs that ran, ``realised`` among those; ``ran``: valid programs that had it, asked or not."""

    asked: int = 0
    realised: int = 0
    ran: int = 0

    @property
    def lost(self) -> int:
        return self.asked - self.realised

    @property
    def conformity(self) -> float:
        return self.realised / max(1, self.asked)


@dataclass
class Tally:
    """A fold over the journal's records. Invariant: ``realised <= asked`` for every feature."""

    features: dict[str, FeatureCount] = field(default_factory=dict)

    def take(self, record: Mapping[str, Any]) -> None:
        """Count one record; only runs count."""
        if record.get("t") != "run":
            return
        outcome = record["outcome"]
        realised = set(outcome.get("realised", ()))
        for feature in outcome["plan"].get("features", ()):
            count = self._of(feature)
            count.asked += 1
            count.realised += feature in realised
        if record.get("valid"):
            for feature in realised:
                self._of(feature).ran += 1

    def _of(self, feature: str) -> FeatureCount:
        return self.features.setdefault(feature, FeatureCount())

    def never(self, features: Iterable[str]) -> list[str]:
        """Those of ``features`` that no valid program had, in their order."""
        return [feature for feature in features if not (count := self.features.get(feature)) or not count.ran]

    def conformity(self) -> list[tuple[str, FeatureCount]]:
        """Features that were asked for, those most often lost first, then the worst share."""
        asked = [(feature, count) for feature, count in self.features.items() if count.asked]
        return sorted(asked, key=lambda item: (-item[1].lost, item[1].conformity, item[0]))
