"""A Fenwick tree: weights that can be changed, extended and sampled from in O(log n)."""

from __future__ import annotations

from array import array
from collections.abc import Sequence


class Fenwick:
    """Non-negative weights at positions 0 … n−1.

    Invariant: ``_tree[i]`` (from 1) is the sum of the weights at positions i − (i & −i) … i − 1, up to rounding.
    """

    def __init__(self) -> None:
        self.weights = array("d")
        self._tree = array("d", [0.0])
        self.total = 0.0

    def __len__(self) -> int:
        return len(self.weights)

    def append(self, weight: float) -> None:
        """Add a position at the end."""
        number = len(self._tree)
        value, child, stop = weight, number - 1, number - (number & -number)
        while child > stop:
            value += self._tree[child]
            child -= child & -child
        self.weights.append(weight)
        self._tree.append(value)
        self.total += weight

    def set(self, position: int, weight: float) -> None:
        change = weight - self.weights[position]
        if change == 0.0:
            return
        self.weights[position] = weight
        self.total += change
        number, size = position + 1, len(self._tree)
        while number < size:
            self._tree[number] += change
            number += number & -number

    def find(self, point: float) -> int:
        """The position at which the running sum of weights first exceeds ``point``, 0 ≤ point < total."""
        number, step, size = 0, 1 << (len(self.weights).bit_length()), len(self._tree)
        while step:
            after = number + step
            if after < size and self._tree[after] <= point:
                number = after
                point -= self._tree[after]
            step >>= 1
        return min(number, len(self.weights) - 1)

    def to_map(self) -> dict[str, object]:
        return {"weights": self.weights.tolist(), "tree": self._tree.tolist(), "total": self.total}

    @classmethod
    def from_map(cls, data: dict[str, Sequence[float]]) -> Fenwick:
        """The exact state, rounding included, so that a resumed campaign draws as the first one would have."""
        tree = cls()
        tree.weights, tree._tree = array("d", data["weights"]), array("d", data["tree"])
        tree.total = float(data["total"])  # type: ignore[arg-type]
        return tree
