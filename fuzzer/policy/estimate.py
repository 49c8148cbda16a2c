"""Estimates: how likely is something new (Good–Turing), has the campaign reached a plateau, quantiles of a Beta."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any


class GoodTuring:
    """Discovery estimate over a sliding window of runs, each of which shows a set of species.

    Good–Turing for incidence data: with n runs and Q1 species seen in exactly one of them, Q1/n estimates the number
    of unseen species that the next run will show, and so bounds the probability that it shows any. Species must be
    observable in *every* run: ids that are disarmed once known would all count as singletons for ever.
    """

    def __init__(self, window: int = 500) -> None:
        self.window = window
        self.runs: deque[tuple[str, ...]] = deque()
        self.counts: dict[str, int] = {}
        self.singletons = 0

    def observe(self, species: Iterable[str]) -> None:
        run = tuple(sorted(set(species)))
        self.runs.append(run)
        for name in run:
            self._change(name, +1)
        if len(self.runs) > self.window:
            for name in self.runs.popleft():
                self._change(name, -1)

    def _change(self, name: str, by: int) -> None:
        before = self.counts.get(name, 0)
        after = before + by
        self.singletons += (after == 1) - (before == 1)
        if after:
            self.counts[name] = after
        else:
            del self.counts[name]

    @property
    def probability(self) -> float:
        """Estimated probability that the next run shows a species unseen in the window; 1.0 before any run."""
        return min(1.0, self.singletons / len(self.runs)) if self.runs else 1.0

    def to_map(self) -> dict[str, Any]:
        return {"window": self.window, "runs": [list(run) for run in self.runs]}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> GoodTuring:
        estimate = cls(data["window"])
        for run in data["runs"]:
            estimate.observe(run)
        return estimate


class Plateau:
    """Whether the campaign still finds anything.

    On a plateau, over a full window, both signs are below ``threshold``: the share of runs that discovered something
    (new coverage or a finding), and the Good–Turing probability. One alone misleads: rare kernels keep the estimate up
    while coverage has long stopped, and coverage of a large library trickles on after the interesting part is done.
    """

    def __init__(self, window: int = 500, threshold: float = 0.02) -> None:
        self.threshold = threshold
        self.estimate = GoodTuring(window)
        self.discoveries: deque[bool] = deque(maxlen=window)

    def observe(self, species: Iterable[str], discovered: bool) -> None:
        self.estimate.observe(species)
        self.discoveries.append(discovered)

    @property
    def discovery_share(self) -> float:
        return sum(self.discoveries) / len(self.discoveries) if self.discoveries else 1.0

    @property
    def reached(self) -> bool:
        full = len(self.discoveries) == self.estimate.window
        return full and self.discovery_share < self.threshold and self.estimate.probability < self.threshold

    def to_map(self) -> dict[str, Any]:
        return {
            "threshold": self.threshold,
            "estimate": self.estimate.to_map(),
            "discoveries": [int(found) for found in self.discoveries],
        }

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Plateau:
        plateau = cls(data["estimate"]["window"], data["threshold"])
        plateau.estimate = GoodTuring.from_map(data["estimate"])
        plateau.discoveries.extend(bool(found) for found in data["discoveries"])
        return plateau


def beta_cdf(x: float, a: float, b: float) -> float:
    """P(X ≤ x) for X ~ Beta(a, b), a and b above 0: the regularised incomplete beta function.

    Continued fraction 26.5.8 of Abramowitz & Stegun, evaluated by the modified Lentz method; error below 1e-10.
    """
    if x <= 0.0:
        return 0.0
    if x >= 1.0:
        return 1.0
    if x > (a + 1) / (a + b + 2):  # the fraction converges fast on the other side only
        return 1.0 - beta_cdf(1.0 - x, b, a)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    tiny = 1e-300
    c, d = 1.0, 1.0 / _away(1.0 - (a + b) * x / (a + 1), tiny)
    result = d
    for m in range(1, 400):
        for numerator in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1.0 / _away(1.0 + numerator * d, tiny)
            c = _away(1.0 + numerator / c, tiny)
            step = c * d
            result *= step
        if abs(step - 1.0) < 1e-12:
            break
    return front * result / a


def _away(value: float, tiny: float) -> float:
    return value if abs(value) > tiny else tiny


def beta_quantile(q: float, a: float, b: float) -> float:
    """The x with ``beta_cdf(x, a, b) == q``, to 1e-9, by bisection."""
    low, high = 0.0, 1.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        if beta_cdf(middle, a, b) < q:
            low = middle
        else:
            high = middle
    return (low + high) / 2
