"""An experiment: the same campaign with one thing changed, over several seeds, compared with statistics. Pure.

An *arm* is a name and options for ``eddy fuzz``; a *trial* is one campaign of an arm with one seed. Arms that share a
seed share chance as far as they can, so differences are taken within a seed.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.exits import UserError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_RESAMPLES = 10_000  # bootstrap; the ends of a 95 % interval then rest on 250 values each


@dataclass(frozen=True)
class Arm:
    """``options`` are for ``eddy fuzz``."""

    name: str
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise UserError(f"arm {self.name!r}: a name is of letters, digits, -, _ and . (it names folders)")

    @property
    def uses_model(self) -> bool:
        return any(
            option in ("--engine=llm", "--engine=mixed") or (before == "--engine" and option in ("llm", "mixed"))
            for before, option in zip(("", *self.options), self.options)
        )


#: Arms that need no file. All but the first need a model.
BUILT_IN = {
    arm.name: arm
    for arm in (
        Arm("template"),
        Arm("mixed", ("--engine", "mixed")),
        Arm("llm", ("--engine", "llm")),
        Arm("mixed-without-knowledge", ("--engine", "mixed", "--without", "knowledge")),
    )
}


@dataclass(frozen=True)
class Trial:
    arm: Arm
    seed: int

    @property
    def name(self) -> str:
        return f"{self.arm.name}-{self.seed}"


@dataclass(frozen=True)
class Spec:
    """What is run. The budget of each trial is ``seconds`` or ``execs``, whichever comes first; 0 is no limit."""

    arms: tuple[Arm, ...]
    seconds: float = 0.0
    execs: int = 0
    repeat: int = 1
    seed: int = 1
    options: tuple[str, ...] = ()  # of every arm

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if not names:
            raise UserError("an experiment needs arms: --arms template,mixed or --file ARMS.toml")
        if len(set(names)) < len(names):
            raise UserError(f"--arms: {next(name for name in names if names.count(name) > 1)!r} is named twice")
        if not self.seconds and not self.execs:
            raise UserError("a trial needs an end: --time 10m or --execs 1000")

    @property
    def trials(self) -> list[Trial]:
        """All arms of one seed, then of the next: what is interrupted is still paired, and no arm has all the noise."""
        return [Trial(arm, self.seed + number) for number in range(self.repeat) for arm in self.arms]

    def to_map(self) -> dict[str, Any]:
        return {
            "seconds": self.seconds,
            "execs": self.execs,
            "repeat": self.repeat,
            "seed": self.seed,
            "options": list(self.options),
            "arms": {arm.name: list(arm.options) for arm in self.arms},
        }

    @classmethod
    def from_map(cls, plain: Mapping[str, Any], where: str) -> Spec:
        """Raises ``UserError`` naming ``where``."""
        try:
            return cls(
                read_arms(plain["arms"], where),
                float(plain["seconds"]),
                int(plain["execs"]),
                int(plain["repeat"]),
                int(plain["seed"]),
                texts(plain["options"], f"{where}: options"),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(f"{where}: not an experiment ({type(error).__name__}: {error}); mend that line") from None


def read_arms(table: Any, where: str) -> tuple[Arm, ...]:
    """``{name: [option, …]}``. Raises ``UserError`` naming ``where``."""
    if not isinstance(table, Mapping) or not table:
        raise UserError(f'{where}: needs a table [arms] of lines such as: uniform = ["--without", "feedback"]')
    return tuple(Arm(name, texts(options, f"{where}: arm {name}")) for name, options in table.items())


def texts(value: Any, where: str) -> tuple[str, ...]:
    """A list of texts. Raises ``UserError`` naming ``where``."""
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise UserError(f'{where}: options are a list of texts, such as ["--engine", "mixed"]')
    return tuple(value)


# -- what is measured -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Metric:
    name: str
    title: str
    digits: int = 0
    percent: bool = False

    def text(self, value: float) -> str:
        number = 100.0 * value if self.percent else value
        return f"{number:,.{self.digits}f}{' %' if self.percent else ''}"


#: The one table of what is reported. Names are a promise to scripts: only ever added.
METRICS = (
    Metric("programs", "programs"),
    Metric("programs_per_hour", "programs/h"),
    Metric("valid_share", "valid", 1, percent=True),
    Metric("conformity", "conformity", 1, percent=True),
    Metric("operators", "operators"),
    Metric("coverage_native", "coverage native"),
    Metric("coverage_python", "coverage python"),
    Metric("coverage_events", "coverage events"),
    Metric("confirmed", "findings confirmed", 1),
    Metric("debatable", "findings debatable", 1),
    Metric("flaky", "findings flaky", 1),
    Metric("groups", "distinct groups", 1),
    Metric("llm_calls", "LLM calls"),
    Metric("llm_programs", "LLM programs"),
    Metric("llm_tokens", "LLM tokens"),
    Metric("llm_money", "LLM money", 4),
)


def measures(status: Mapping[str, Any], groups: int) -> dict[str, float]:
    """The metrics of one campaign from ``eddy status --json``; ``groups``: distinct bugs among its findings.

    Programs an hour are over the whole campaign, start-up and confirmation of findings included.
    """
    coverage, findings = status.get("coverage", {}), status.get("findings", {})
    programs = float(status.get("execs_done", 0))
    return {
        "programs": programs,
        "programs_per_hour": 3600.0 * programs / max(float(status.get("run_time", 0)), 1.0),
        "valid_share": float(status.get("valid_rate", 0.0)),
        "conformity": float(status.get("conformity", 0.0)),
        "operators": float(status.get("operators_executed", 0)),
        **{f"coverage_{name}": float(coverage.get(name, 0)) for name in ("native", "python", "events")},
        **{name: float(findings.get(name, 0)) for name in ("confirmed", "debatable", "flaky")},
        "groups": float(groups),
        "llm_calls": float(status.get("llm_requests", 0)),
        **{f"llm_{name}": float(status.get(f"llm_{name}", 0)) for name in ("programs", "tokens", "money")},
    }


# -- statistics -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Difference:
    """An arm against the first one, in one metric.

    ``mean`` of the differences within seeds, ``low`` and ``high`` the ends of their 95 % bootstrap interval; ``a12``
    the chance that a trial of the arm has more than one of the first (ties count half: Vargha and Delaney 2000);
    ``p`` of the two-sided Mann–Whitney U test, None without scipy. With few seeds all of it is only a hint: three
    pairs cannot reach p < 0.1.
    """

    mean: float
    low: float
    high: float
    a12: float
    p: float | None
    pairs: int


def bootstrap(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Ends of the 95 % percentile interval of the mean; same values, same interval. Needs at least one value."""
    rng, count = random.Random(seed), len(values)
    means = sorted(sum(rng.choices(values, k=count)) / count for _ in range(_RESAMPLES))
    return means[int(0.025 * _RESAMPLES)], means[int(0.975 * _RESAMPLES) - 1]


def a12(left: Sequence[float], right: Sequence[float]) -> float:
    """Vargha and Delaney's Â12: the share of pairs in which left is larger, ties counting half."""
    more = sum((x > y) + 0.5 * (x == y) for x in left for y in right)
    return more / (len(left) * len(right))


def mann_whitney(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Two-sided p; None without scipy."""
    try:
        from scipy.stats import mannwhitneyu
    except ImportError:
        return None
    if len({*left, *right}) == 1:
        return 1.0  # all alike: the test has nothing to rank
    return float(mannwhitneyu(left, right, alternative="two-sided").pvalue)


def difference(arm: Mapping[int, float], base: Mapping[int, float]) -> Difference | None:
    """Values by seed; None with fewer than two seeds in common."""
    seeds = sorted(arm.keys() & base.keys())
    if len(seeds) < 2:
        return None
    ours, theirs = [arm[seed] for seed in seeds], [base[seed] for seed in seeds]
    deltas = [x - y for x, y in zip(ours, theirs)]
    low, high = bootstrap(deltas)
    mean = sum(deltas) / len(deltas)
    return Difference(mean, low, high, a12(ours, theirs), mann_whitney(ours, theirs), len(seeds))


@dataclass(frozen=True)
class Results:
    """What was measured: arm → seed → metric → value. ``arms`` in the order of the spec."""

    arms: tuple[str, ...]
    values: Mapping[str, Mapping[int, Mapping[str, float]]]
    failed: Mapping[str, str] = field(default_factory=dict)  # trial → why there is no result

    def of(self, arm: str, metric: str) -> dict[int, float]:
        return {seed: row[metric] for seed, row in sorted(self.values.get(arm, {}).items()) if metric in row}

    def mean(self, arm: str, metric: str) -> float | None:
        values = list(self.of(arm, metric).values())
        return sum(values) / len(values) if values else None

    def differences(self) -> dict[str, dict[str, Difference]]:
        """Arm → metric → against the first arm; what has fewer than two pairs is left out."""
        base, *others = self.arms
        found: dict[str, dict[str, Difference]] = {}
        for arm in others:
            for metric in METRICS:
                one = difference(self.of(arm, metric.name), self.of(base, metric.name))
                if one is not None:
                    found.setdefault(arm, {})[metric.name] = one
        return found

    def to_map(self) -> dict[str, Any]:
        rows = [
            {
                "arm": arm,
                "trials": {str(seed): dict(row) for seed, row in sorted(self.values.get(arm, {}).items())},
                "mean": {metric.name: self.mean(arm, metric.name) for metric in METRICS},
            }
            for arm in self.arms
        ]
        against = {
            arm: {name: dict(vars(one)) for name, one in found.items()} for arm, found in self.differences().items()
        }
        return {"arms": rows, "base": self.arms[0], "differences": against, "failed": dict(self.failed)}


def table(results: Results) -> str:
    """Markdown: means by arm, then the differences from the first arm."""
    counts = [f"{arm} ({len(results.values.get(arm, {}))})" for arm in results.arms]
    rows = [["mean (trials)", *counts]]
    for metric in METRICS:
        means = [results.mean(arm, metric.name) for arm in results.arms]
        if any(means) or not metric.name.startswith("llm_"):
            rows.append([metric.title, *("–" if mean is None else metric.text(mean) for mean in means)])
    parts = [_aligned(rows)]
    for arm, found in results.differences().items():
        parts.append(f"{arm} − {results.arms[0]}, {next(iter(found.values())).pairs} seeds:\n\n{_differences(found)}")
    return "\n\n".join(parts)


def _differences(found: Mapping[str, Difference]) -> str:
    rows = [["difference", "mean", "95 % interval", "Â12", "p"]]
    for metric in METRICS:
        one = found.get(metric.name)
        if one is None or one.low == one.high == one.mean == 0:
            continue
        p = "–" if one.p is None else f"{one.p:.3f}"
        interval = f"{metric.text(one.low)} … {metric.text(one.high)}"
        rows.append([metric.title, metric.text(one.mean), interval, f"{one.a12:.2f}", p])
    return _aligned(rows) if len(rows) > 1 else "no difference"


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = [
        f"| {row[0].ljust(widths[0])} | "
        + " | ".join(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))
        + " |"
        for row in rows
    ]
    rule = f"|{'-' * (widths[0] + 2)}|" + "|".join("-" * (width + 1) + ":" for width in widths[1:]) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])
