"""Pairs of feature values that ran together: a coverage domain of its own, of low weight."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Name of the domain in rewards and in keys of the corpus.
DOMAIN = "pairs"


class Combinations:
    """A bit per unordered pair of features of different dimensions.

    Bounded: n features take n·(n−1)/2 bits (about 3 kB for 200), however long the campaign. Pairs within one dimension
    are left out: that two dtypes met says little that the dimension of mixed dtypes does not say better.
    """

    def __init__(self, features: Iterable[str]) -> None:
        self.features = sorted(features)
        self._index = {feature: number for number, feature in enumerate(self.features)}
        self._dimension = [feature.partition("=")[0] for feature in self.features]
        size = len(self.features)
        self._seen = bytearray((size * (size - 1) // 2 + 7) // 8)
        self.total = 0  # pairs seen

    def absorb(self, realised: Iterable[str]) -> list[str]:
        """Mark all pairs of one run; return the keys of those that never ran together before, sorted.

        Features outside the space (of an older campaign, say) are ignored. The key of a pair reads "pairs:a+b".
        """
        numbers = sorted(self._index[feature] for feature in realised if feature in self._index)
        new = []
        for position, right in enumerate(numbers):
            base = right * (right - 1) // 2
            for left in numbers[:position]:
                if self._dimension[left] == self._dimension[right]:
                    continue
                byte, mask = (base + left) >> 3, 1 << ((base + left) & 7)
                if not self._seen[byte] & mask:
                    self._seen[byte] |= mask
                    new.append(f"{DOMAIN}:{self.features[left]}+{self.features[right]}")
        self.total += len(new)
        return sorted(new)

    def unseen(self, realised: Iterable[str]) -> list[str]:
        """What ``absorb`` would return; changes nothing."""
        names = sorted({feature for feature in realised if feature in self._index})
        return sorted(
            f"{DOMAIN}:{left}+{right}"
            for position, right in enumerate(names)
            for left in names[:position]
            if left.partition("=")[0] != right.partition("=")[0] and not self.seen(left, right)
        )

    def seen(self, left: str, right: str) -> bool:
        """Whether two features of different dimensions ran together. Raises ``KeyError`` for unknown ones."""
        low, high = sorted((self._index[left], self._index[right]))
        bit = high * (high - 1) // 2 + low
        return bool(self._seen[bit >> 3] >> (bit & 7) & 1)

    def unseen_pairs(self, features: Iterable[str]) -> int:
        """How many pairs of these features, of different dimensions, never ran together."""
        known = [feature for feature in features if feature in self._index]
        return sum(
            1
            for position, right in enumerate(known)
            for left in known[:position]
            if left.partition("=")[0] != right.partition("=")[0] and not self.seen(left, right)
        )

    def to_map(self) -> dict[str, Any]:
        return {"features": self.features, "seen": bytes(self._seen), "total": self.total}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Combinations:
        pairs = cls(data["features"])
        pairs._seen = bytearray(data["seen"])
        pairs.total = data["total"]
        return pairs
