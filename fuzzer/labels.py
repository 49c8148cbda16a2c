"""A person's judgement of findings, and what it says about the automatic one. Pure; ``store.labels`` keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from fuzzer.finding import Finding, State
from fuzzer.policy.estimate import beta_quantile

#: Format of ``labels.json``. 1: the first.
FORMAT = 1


class Label(str, Enum):
    """What a person says of a finding."""

    REAL = "real"
    NOT_A_BUG = "not-a-bug"
    DUPLICATE_OF = "duplicate-of"  # the same bug as another finding
    DEBATABLE = "debatable"  # a real difference that may be intended
    IGNORED = "ignored"  # no judgement: not wanted here, and why


@dataclass(frozen=True)
class Judgement:
    """One label. ``of`` is the major signature of the finding it repeats; ``at`` is in seconds since 1970."""

    label: Label
    of: str = ""
    why: str = ""
    at: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "label", Label(self.label))
        if (self.label is Label.DUPLICATE_OF) != bool(self.of):
            raise ValueError("duplicate-of names the other finding, and no other label does")
        if self.label is Label.IGNORED and not self.why:
            raise ValueError("an ignored finding says why")

    def to_map(self) -> dict[str, Any]:
        return {"label": self.label.value, "of": self.of, "why": self.why, "at": self.at}


@dataclass(frozen=True)
class Share:
    """``part`` of ``whole``; ``value`` is None where there is nothing to count."""

    part: int
    whole: int

    @property
    def value(self) -> float | None:
        return self.part / self.whole if self.whole else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % interval of the true share: quantiles of Beta(part + ½, whole − part + ½) (Jeffreys' prior)."""
        a, b = self.part + 0.5, self.whole - self.part + 0.5
        low = 0.0 if not self.part else beta_quantile(0.025, a, b)
        high = 1.0 if self.part == self.whole else beta_quantile(0.975, a, b)
        return low, high

    def to_map(self) -> dict[str, Any]:
        """For ``--json``: ``part, whole, value`` and, where there is anything, ``interval``."""
        plain: dict[str, Any] = {"part": self.part, "whole": self.whole, "value": self.value}
        return plain | ({"interval": list(self.interval)} if self.whole else {})


class Labels:
    """Judgements by major signature. Immutable: ``with_label`` and ``without`` make new ones.

    Invariant: no chain of duplicates comes back to where it began.
    """

    def __init__(self, judgements: Mapping[str, Judgement] | None = None) -> None:
        self._judgements = dict(judgements or {})

    def __len__(self) -> int:
        return len(self._judgements)

    def __iter__(self) -> Iterator[str]:
        return iter(self._judgements)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and self._judgements == other._judgements

    __hash__ = None  # type: ignore[assignment]

    def get(self, major: str) -> Judgement | None:
        return self._judgements.get(major)

    def with_label(self, major: str, judgement: Judgement) -> Labels:
        """Labels with this one added or replaced. Raises ``ValueError`` for a duplicate of itself, also in a circle."""
        if judgement.of and self.without(major).original(judgement.of) == major:
            raise ValueError("a finding cannot be a duplicate of itself, also not by way of others")
        return Labels({**self._judgements, major: judgement})

    def without(self, major: str) -> Labels:
        return Labels({key: value for key, value in self._judgements.items() if key != major})

    def original(self, major: str) -> str:
        """The finding at the end of a chain of duplicates; itself for one that is none."""
        seen = set()
        while (judgement := self._judgements.get(major)) and judgement.of and major not in seen:
            seen.add(major)
            major = judgement.of
        return major

    def truth(self, major: str) -> Label | None:
        """The label of the original; None while nobody labelled that one."""
        judgement = self._judgements.get(self.original(major))
        return judgement.label if judgement else None

    def to_map(self) -> dict[str, Any]:
        return {"format": FORMAT, "labels": {major: item.to_map() for major, item in sorted(self._judgements.items())}}

    @classmethod
    def from_map(cls, plain: Any) -> Labels:
        """Read what ``to_map`` gave; unknown keys are left aside. Raises ``ValueError`` with one line."""
        if not isinstance(plain, Mapping) or not isinstance(plain.get("format"), int):
            raise ValueError("no labels: no format number")
        if plain["format"] > FORMAT:
            raise ValueError(f"written by a newer Eddy (format {plain['format']}, this one reads {FORMAT})")
        labels = cls()
        try:
            for major, item in plain["labels"].items():
                made = Judgement(Label(item["label"]), str(item.get("of", "")), str(item.get("why", "")), item["at"])
                labels = labels.with_label(str(major), made)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"no labels: {type(error).__name__} {error}") from None
        return labels


def automatic(finding: Finding) -> str:
    """What Eddy itself says: ``bug`` | ``known`` (a bug that is reported already) | ``debatable`` | ``flaky``."""
    if finding.state is State.FLAKY:
        return "flaky"
    if finding.debatable:
        return "debatable"
    return "known" if finding.state is State.KNOWN else "bug"


def precision(findings: Iterable[Finding], labels: Labels) -> Share:
    """Of what Eddy calls a bug and a person judged: how much is real, or repeats something real.

    Left out: what Eddy calls debatable or flaky, what a person calls debatable or ignores, and duplicates of a
    finding that has no label.
    """
    truths = [labels.truth(item.signature.major) for item in findings if automatic(item) in ("bug", "known")]
    judged = [truth for truth in truths if truth in (Label.REAL, Label.NOT_A_BUG)]
    return Share(judged.count(Label.REAL), len(judged))


def agreement(findings: Iterable[Finding], labels: Labels) -> Share:
    """Of what a person judged: how often Eddy's own classification says the same.

    Real agrees with ``bug`` and ``known``, debatable with ``debatable``, not a bug with ``flaky`` only.
    """
    expected = {
        Label.REAL: ("bug", "known"),
        Label.DEBATABLE: ("debatable",),
        Label.NOT_A_BUG: ("flaky",),
    }
    pairs = [(automatic(item), labels.truth(item.signature.major)) for item in findings]
    judged = [(said, truth) for said, truth in pairs if truth in expected]
    return Share(sum(said in expected[truth] for said, truth in judged if truth), len(judged))


def set_aside(finding: Finding, judgement: Judgement | None) -> str:
    """Why a finding is no open bug, in a few words; empty for one that is. A person's word counts before Eddy's."""
    if judgement is not None:
        why = f": {judgement.why}" if judgement.why else ""
        return "" if judgement.label is Label.REAL else f"labelled {judgement.label.value}{why}"
    if finding.state is State.IGNORED:
        return f"ignored: {finding.note}"
    if finding.state is State.FIXED:
        return "fixed"
    said = automatic(finding)
    if said == "debatable":
        return f"debatable: {finding.debatable}"
    if said == "known":
        return f"known: {finding.known_issue}"
    return "flaky" if said == "flaky" else ""
