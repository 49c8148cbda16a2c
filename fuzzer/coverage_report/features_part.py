"""The part of a report about features: which brought new coverage, where, and which hardly ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.coverage_report.evidence import DOMAINS, Run

#: Neighbours on either side that say what a run of its time was worth: coverage grows fast at first, then hardly.
_NEIGHBOURS = 25
#: Runs' worth of average luck that every feature starts with, so that one lucky run does not lead the list.
_PRIOR = 5.0


@dataclass
class _Credit:
    runs: int = 0
    new: Counter[str] = field(default_factory=Counter)  # domain → ids
    share: float = 0.0  # ids, each run's divided among its features
    expected: float = 0.0  # ids that runs at the same time brought on average
    places: Counter[str] = field(default_factory=Counter)  # file or namespace → ids


def features_part(
    runs: Sequence[Run], known: Iterable[str] = (), namespaces: Mapping[str, Mapping[int, str]] | None = None
) -> dict[str, Any]:
    """``{features, never}``: rows ``feature, runs, native, python, events, new, per_run, share, lift, where``; names.

    ``new`` counts ids that runs with the feature were the first to reach. ``share`` divides each run's ids among its
    features. ``lift`` is ``new`` over what the 50 runs around each of its runs brought on average: above 1, the feature
    brings more than its time did; it is drawn towards 1 for features of few runs. ``where`` names the place (a Python
    file, a C++ namespace where ``namespaces`` tells) that got more of its ids, in number, than the feature's part of
    everything explains. Rows come by falling lift. ``never`` are features of ``known`` that no run realised.
    """
    totals = [sum(run.new(domain) for domain in DOMAINS) for run in runs]
    expected = _local_means(totals)
    mean = sum(totals) / max(1, len(totals))
    credits: dict[str, _Credit] = {}
    everywhere: Counter[str] = Counter()
    for run, total, usual in zip(runs, totals, expected):
        places = _places(run, namespaces or {})
        everywhere.update(places)
        news = {domain: run.new(domain) for domain in DOMAINS}
        for feature in run.features:
            credit = credits.setdefault(feature, _Credit())
            credit.runs += 1
            credit.new.update(news)
            credit.share += total / len(run.features)
            credit.expected += usual
            credit.places.update(places)
    rows = [_row(feature, credit, everywhere, mean) for feature, credit in credits.items()]
    rows.sort(key=lambda row: (-row["lift"], row["feature"]))
    return {"features": rows, "never": sorted(set(known) - credits.keys())}


def _row(feature: str, credit: _Credit, everywhere: Counter[str], mean: float) -> dict[str, Any]:
    new = sum(credit.new.values())
    prior = _PRIOR * mean
    return {
        "feature": feature,
        "runs": credit.runs,
        **{domain: credit.new[domain] for domain in DOMAINS},
        "new": new,
        "per_run": round(new / credit.runs, 1),
        "share": round(credit.share, 1),
        "lift": round((new + prior) / (credit.expected + prior), 2) if prior else 1.0,
        "where": _most_excess(credit.places, everywhere),
    }


def _local_means(totals: Sequence[int]) -> list[float]:
    sums = [0]
    for total in totals:
        sums.append(sums[-1] + total)
    means = []
    for index in range(len(totals)):
        low, high = max(0, index - _NEIGHBOURS), min(len(totals), index + _NEIGHBOURS + 1)
        means.append((sums[high] - sums[low]) / (high - low))
    return means


def _places(run: Run, namespaces: Mapping[str, Mapping[int, str]]) -> Counter[str]:
    places: Counter[str] = Counter()
    for file, lines in run.coverage.get("python", {}).items():
        places[file] += len(lines)
    for library, offsets in run.coverage.get("native", {}).items():
        spaces = namespaces.get(library, {})
        places.update(spaces.get(offset, library) for offset in offsets)
    return places


def _most_excess(places: Counter[str], everywhere: Counter[str]) -> str:
    part = sum(places.values()) / max(1, sum(everywhere.values()))
    best = max(places, key=lambda place: (places[place] - part * everywhere[place], place), default="")
    return best if best and places[best] > part * everywhere[best] else ""
