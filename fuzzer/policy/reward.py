"""The reward of one run, in [0, 1]: 1 for a confirmed new finding, something for new coverage, else 0."""

from __future__ import annotations

import math
from collections.abc import Mapping

from fuzzer.verdict import Kind

#: The most that coverage alone can earn: a finding is always worth at least twice as much.
COVERAGE_CAP = 0.5

#: The most that one domain can earn, before the cap. Unknown domains take ``_DEFAULT_WEIGHT``.
#: Pairs of features are plentiful and cheap; native and Python ids are the code itself.
DOMAIN_WEIGHTS: Mapping[str, float] = {
    "native": 1.0, "python": 1.0, "events": 0.8, "kernels": 0.6, "pairs": 0.2,
}  # fmt: skip
_DEFAULT_WEIGHT = 0.5

#: New ids, in units of the campaign's mean yield per run, that earn a domain's full weight.
_SATURATION = 32.0

#: Kinds whose coverage is worth nothing: it belongs to the program's own fault, is unstable, or is ours.
_NOTHING = frozenset({Kind.INVALID, Kind.FLAKY, Kind.HARNESS_ERROR})


def reward(
    kind: Kind | str,
    new_finding: bool,
    new_coverage: Mapping[str, int],
    totals: Mapping[str, int],
    runs: int,
    weights: Mapping[str, float] = DOMAIN_WEIGHTS,
) -> float:
    """What one run was worth.

    Rarity: a new id counts against the campaign's mean yield, ``totals[domain] / runs`` ids a run (at least 1). Early
    on a run brings hundreds, so one more is nothing; later one is rare, and counts in full.
    Diminishing: the gain of a domain is log2(1 + new / yield) / log2(1 + 32), at most 1.
    Balance: domains join as 1 − Π(1 − weight · gain): a domain can fill up its own weight and no more, so none drowns
    the others, and several at once earn more than one.

    Args:
        kind: of the verdict. A suspect that is no new finding is a duplicate and earns 0, with all it covered.
        new_finding: confirmed and of a signature not seen before.
        new_coverage: domain → number of ids seen for the first time.
        totals: domain → ids known, after this run.
        runs: runs so far, with this one; at least 1.
    """
    kind = Kind(kind)
    if new_finding:
        return 1.0
    if kind in _NOTHING or kind.is_fault:
        return 0.0
    rest = 1.0
    for domain, new in new_coverage.items():
        if new > 0:
            rest *= 1.0 - weights.get(domain, _DEFAULT_WEIGHT) * gain(new, totals.get(domain, new), runs)
    return COVERAGE_CAP * (1.0 - rest)


def gain(new: int, total: int, runs: int) -> float:
    """Gain of one domain in [0, 1]; see ``reward``."""
    mean_yield = max(1.0, total / max(runs, 1))
    return min(1.0, math.log2(1.0 + new / mean_yield) / math.log2(1.0 + _SATURATION))
