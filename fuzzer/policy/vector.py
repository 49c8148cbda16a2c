"""Feature vectors: which few properties the next program is asked to have."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fuzzer.features.space import FeatureSpace
from fuzzer.policy.bandit import ArmSet

#: Candidates per vector and vectors remembered, as in adaptive random testing: more of either changes little.
_CANDIDATES = 8
_REMEMBERED = 200
#: A dimension that may hold several values is asked for a second one this often.
_SECOND_VALUE = 0.1


class VectorSampler:
    """Draws vectors: dimensions first, then a value in each, both by Thompson sampling; then keeps the candidate
    that lies farthest (Jaccard distance) from the nearest of the last vectors asked.

    Two features of one vector never contradict each other (``FeatureSpace.compatible``).
    """

    def __init__(self, space: FeatureSpace, learning: bool = True, askable: Collection[str] | None = None) -> None:
        """``askable``: features that some engine can bring about; None for all. The others are only recognised."""
        self.space = space
        sampled = [dimension for dimension in space.dimensions.values() if dimension.sampled]
        self.dimensions = ArmSet("dimension", (dimension.name for dimension in sampled), learning=learning)
        self.values = ArmSet("feature", space.features, learning=learning)
        self._value_ids = {
            dimension.name: [feature.id for feature in dimension.values if askable is None or feature.id in askable]
            for dimension in sampled
        }
        self._value_ids = {name: ids for name, ids in self._value_ids.items() if ids}
        self._dimension_weight = {dimension.name: dimension.weight for dimension in sampled}
        self._value_weight = {feature.id: feature.weight for feature in space.features.values()}
        self._bit = {feature: 1 << number for number, feature in enumerate(space.features)}
        self.recent: deque[int] = deque(maxlen=_REMEMBERED)

    def draw(self, rng: random.Random, fewest: int, most: int, exploration: float | None = None) -> tuple[str, ...]:
        """A vector of ``fewest`` … ``most`` features (fewer only where nothing compatible is left)."""
        candidates = [self._candidate(rng, rng.randint(fewest, most), exploration) for _ in range(_CANDIDATES)]
        best = max(candidates, key=lambda vector: self._distance(self._bits(vector)))
        self.remember(best)
        return best

    def remember(self, vector: Sequence[str]) -> None:
        self.recent.append(self._bits(vector))

    def credit(self, asked: Sequence[str], realised: frozenset[str], reward: float, cost: float) -> None:
        """Credit what was realised: every realised feature; a dimension when a feature asked of it was realised."""
        known = realised & self._bit.keys()
        self.values.credit_many(known, reward, cost)
        dimensions = {feature.partition("=")[0] for feature in asked if feature in known}
        if dimensions:
            self.dimensions.credit_many(dimensions, reward, cost)

    def _candidate(self, rng: random.Random, size: int, exploration: float | None) -> tuple[str, ...]:
        vector: list[str] = []
        names = list(self._value_ids)
        for name in self.dimensions.choose_many(rng, size, names, exploration, self._dimension_weight):
            count = 2 if not self.space.dimensions[name].exclusive and rng.random() < _SECOND_VALUE else 1
            ranked = self.values.choose_many(rng, count + 2, self._value_ids[name], exploration, self._value_weight)
            fitting = [value for value in ranked if all(self.space.compatible(value, other) for other in vector)]
            for value in fitting[:count]:
                if len(vector) < size:
                    vector.append(value)
        return tuple(vector)

    def _bits(self, vector: Sequence[str]) -> int:
        bits = 0
        for feature in vector:
            bits |= self._bit.get(feature, 0)
        return bits

    def _distance(self, bits: int) -> tuple[float, float]:
        """Distance to the nearest remembered vector, then the mean distance."""
        if not self.recent:
            return (1.0, 1.0)
        nearest, total = 1.0, 0.0
        for other in self.recent:
            union = (bits | other).bit_count()
            distance = 1.0 - (bits & other).bit_count() / union if union else 0.0
            total += distance
            nearest = min(nearest, distance)
        return (nearest, total / len(self.recent))

    def to_map(self) -> dict[str, Any]:
        names = list(self._bit)
        return {
            "dimensions": self.dimensions.to_map(),
            "values": self.values.to_map(),
            "recent": [[names[i] for i in range(bits.bit_length()) if bits >> i & 1] for bits in self.recent],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        """Take over a state written by ``to_map``. Features that are new in the space start fresh."""
        self.dimensions = ArmSet.from_map(data["dimensions"])
        self.values = ArmSet.from_map(data["values"])
        for dimension in self._value_ids:
            self.dimensions.add(dimension)
        for feature in self._bit:
            self.values.add(feature)
        self.recent.clear()
        for vector in data["recent"]:
            self.remember(vector)
