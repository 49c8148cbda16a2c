"""Which findings are the same bug? Pure; a person's splits and merges are kept by ``store.groups``.

Equal major signatures are one finding already. Beyond that: refusals are alike when their innermost frames are;
silent faults when the same part of the compiler makes them from the same operators and features.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.finding import Finding
from fuzzer.observation import Fault
from fuzzer.signature import compiler_error, culprits, root_message, without_dtypes
from fuzzer.verdict import Kind

#: Format of ``groups.json``. 1: the first.
FORMAT = 1

#: Kinds that raise: their frames tell where.
_LOUD = frozenset({Kind.COMPILE_ERROR, Kind.EXTRA_CHECK, Kind.EAGER_INTERNAL_ASSERT})

#: A wrong value that is returned and one that is left in an input: the same, seen at two places.
_WRITTEN = {Kind.WRONG_VALUE, Kind.WRONG_MUTATION}

#: Subsystems of torch's bisector whose parts are of one operator; a pass works on many, and may have several bugs.
_OF_OPERATORS = ("decomposition ", "lowerings ")

#: Innermost frames that are compared, and the distance (0 to 1) below which two lists are of one bug.
_FRAMES = 8
_NEAR = 0.25

#: Weight of a frame against the next inner one: the place of the failure says more than the way to it.
_DECAY = 0.7


@dataclass(frozen=True)
class Group:
    """Findings of one bug, by major signature. ``representative`` has the smallest program."""

    representative: str
    members: tuple[str, ...]


@dataclass(frozen=True)
class Decisions:
    """What a person said: sets that belong together, and findings that stand alone. Sets are disjoint."""

    merged: tuple[frozenset[str], ...] = ()
    split: frozenset[str] = frozenset()

    def merge(self, majors: Iterable[str]) -> Decisions:
        """These belong together; with all that any of them was merged with before."""
        whole = frozenset(majors)
        if len(whole) < 2:
            raise ValueError("a merge needs at least two findings")
        apart = [item for item in self.merged if not item & whole]
        whole = whole.union(*(item for item in self.merged if item & whole))
        return Decisions((*apart, whole), self.split - whole)

    def alone(self, major: str) -> Decisions:
        """This one belongs to no group."""
        rest = [item - {major} for item in self.merged]
        return Decisions(tuple(item for item in rest if len(item) > 1), self.split | {major})

    def to_map(self) -> dict[str, Any]:
        merged = sorted(sorted(item) for item in self.merged)
        return {"format": FORMAT, "merged": merged, "split": sorted(self.split)}

    @classmethod
    def from_map(cls, plain: Any) -> Decisions:
        """Read what ``to_map`` gave. Raises ``ValueError`` with one line."""
        if not isinstance(plain, Mapping) or not isinstance(plain.get("format"), int):
            raise ValueError("no groups: no format number")
        if plain["format"] > FORMAT:
            raise ValueError(f"written by a newer Eddy (format {plain['format']}, this one reads {FORMAT})")
        try:
            made = cls()
            for item in plain["merged"]:
                made = made.merge(str(major) for major in item)
            for major in plain["split"]:
                made = made.alone(str(major))
        except (KeyError, TypeError) as error:
            raise ValueError(f"no groups: {type(error).__name__} {error}") from None
        return made


def group(findings: Iterable[Finding], decisions: Decisions | None = None) -> list[Group]:
    """Groups, largest first; every finding is in exactly one. Independent of the order of ``findings``."""
    decisions = decisions or Decisions()
    ordered = sorted(findings, key=lambda item: item.signature.major)
    clusters: list[list[Finding]] = []
    for finding in ordered:
        home = _home(finding, clusters, decisions)
        if home is None:
            clusters.append([finding])
        else:
            home.append(finding)
    clusters = list(_merged(clusters, _with_consequences(ordered, decisions)))
    groups = [_group(cluster) for cluster in clusters]
    return sorted(groups, key=lambda item: (-len(item.members), item.representative))


def _home(finding: Finding, clusters: Sequence[list[Finding]], decisions: Decisions) -> list[Finding] | None:
    """The cluster whose first member is nearest, and near enough."""
    if finding.signature.major in decisions.split:
        return None
    near = [
        (away, number)
        for number, cluster in enumerate(clusters)
        if cluster[0].signature.major not in decisions.split and (away := distance(finding, cluster[0])) <= _NEAR
    ]
    return clusters[min(near)[1]] if near else None


def _with_consequences(findings: Sequence[Finding], decisions: Decisions) -> Decisions:
    """A shape that a decomposition gets wrong is met again by whatever reads the result, as faults of other kinds."""
    for wrong in findings:
        part = _bisected(wrong)
        if wrong.kind is not Kind.METADATA or "shape is" not in wrong.reason or not part.startswith("decomposition "):
            continue
        same = {item.signature.major for item in findings if _bisected(item) == part and not item.debatable}
        same -= decisions.split
        if wrong.signature.major in same and len(same) > 1:
            decisions = decisions.merge(same)
    return decisions


def _merged(clusters: Sequence[list[Finding]], decisions: Decisions) -> Iterator[list[Finding]]:
    taken: set[int] = set()
    for number, cluster in enumerate(clusters):
        if number in taken:
            continue
        members = list(cluster)
        grown = True
        while grown:
            grown = False
            majors = {item.signature.major for item in members}
            wanted = frozenset(majors).union(*(item for item in decisions.merged if item & majors))
            for other in range(number + 1, len(clusters)):
                if other not in taken and any(item.signature.major in wanted for item in clusters[other]):
                    taken.add(other)
                    members += clusters[other]
                    grown = True
        yield members


def _group(members: Sequence[Finding]) -> Group:
    best = min(members, key=lambda item: (bool(item.debatable), len(item.shown_text), item.signature.major))
    return Group(best.signature.major, tuple(sorted(item.signature.major for item in members)))


def distance(one: Finding, other: Finding) -> float:
    """0: surely the same bug, 1: surely not. Symmetric."""
    if one.signature.major == other.signature.major:
        return 0.0
    same_kind = one.kind is other.kind or {one.kind, other.kind} == _WRITTEN
    if not same_kind or bool(one.debatable) != bool(other.debatable):
        return 1.0
    if one.debatable:
        return 0.0 if one.debatable == other.debatable else 1.0
    if one.kind in _LOUD:
        return _loud_distance(one, other)
    if one.kind is Kind.MISSING_CHECK:
        return _unchecked_distance(one, other)
    return _silent_distance(one, other)


def _loud_distance(one: Finding, other: Finding) -> float:
    frames = frame_distance(_frames(one), _frames(other))
    types = [str(_fault(item).get("cause_type") or _fault(item).get("type", "")) for item in (one, other)]
    if types[0] != types[1]:
        return 1.0
    refused = [
        compiler_error(f"{_fault(item).get('message', '')}\n{_fault(item).get('cause_message', '')}")
        for item in (one, other)
    ]
    if all(refused):  # one place runs the compiler, whatever it then refuses
        return 1.0 - _overlap(*(frozenset(re.findall(r"\w+", said)) for said in refused))
    # Dynamo and the lowerings raise for many reasons at one place: the messages must agree in their words.
    words = _overlap(_words(one), _words(other))
    return max(frames, 0.5 * (1.0 - words))


def _unchecked_distance(one: Finding, other: Finding) -> float:
    """A decomposition or lowering that checks nothing is one bug, however many refusals it lets through. Elsewhere the
    message says which check; another operator's check of the same words is another bug."""
    parts = [_bisected(item) for item in (one, other)]
    if parts[0] == parts[1] and parts[0].startswith(_OF_OPERATORS):
        return 0.0
    said = [(without_dtypes(item.signature.minor), culprit(item)) for item in (one, other)]
    return 0.0 if said[0] == said[1] else 1.0


def _silent_distance(one: Finding, other: Finding) -> float:
    backends = [str(item.triage.get("backend", "")) for item in (one, other)]
    if all(backends) and backends[0] != backends[1]:
        return 1.0
    parts = [_bisected(item) for item in (one, other)]
    if all(parts) and parts[0] != parts[1]:
        return 1.0
    if all(parts) and parts[0].startswith(_OF_OPERATORS):
        return 0.0
    operators = 1.0 - _overlap(culprit(one), culprit(other))
    needed = [frozenset(item.triage.get("essential_features", ())) for item in (one, other)]
    features = 1.0 - _overlap(*needed) if all(needed) else operators
    return 0.7 * operators + 0.3 * features


def _bisected(finding: Finding) -> str:
    """Subsystem and operator or pass that torch's own bisector named, without node numbers; empty where it did not."""
    found: Any = finding.triage.get("bisect")
    if not isinstance(found, Mapping) or not found.get("what"):
        return ""
    return f"{found.get('subsystem', '')} {re.sub(r'[_ ]?[0-9]+', '', str(found['what']))}"


def culprit(finding: Finding) -> frozenset[str]:
    """Operators of the (reduced) program that may be at fault."""
    return culprits(finding.operators)


def _fault(finding: Finding) -> Mapping[str, Any]:
    faults = finding.facts.get("faults", {})
    found: Any = faults.get(finding.stage) or next(iter(faults.values()), None)
    return found if isinstance(found, Mapping) else {}


def _frames(finding: Finding) -> tuple[str, ...]:
    return tuple(str(frame) for frame in _fault(finding).get("frames", ()))


def frame_distance(one: Sequence[str], other: Sequence[str]) -> float:
    """Weighted edit distance of two stacks (outermost frame first), over their innermost frames, from 0 to 1.

    A frame that is inserted, dropped or replaced costs 0.7**depth, the innermost having depth 0; the sum is divided by
    what replacing everything would cost. Two empty stacks say nothing: 1.
    """
    left, right = list(reversed(one))[:_FRAMES], list(reversed(other))[:_FRAMES]
    if not left or not right:
        return 1.0
    rows = [[0.0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        rows[i][0] = rows[i - 1][0] + _DECAY ** (i - 1)
    for j in range(1, len(right) + 1):
        rows[0][j] = rows[0][j - 1] + _DECAY ** (j - 1)
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            weight = _DECAY ** (max(i, j) - 1)
            rows[i][j] = min(
                rows[i - 1][j] + _DECAY ** (i - 1),
                rows[i][j - 1] + _DECAY ** (j - 1),
                rows[i - 1][j - 1] + (0.0 if left[i - 1] == right[j - 1] else weight),
            )
    whole = sum(_DECAY**depth for depth in range(max(len(left), len(right))))
    return min(1.0, rows[-1][-1] / whole)


def _words(finding: Finding) -> frozenset[str]:
    """Words of what went wrong, as it was said: the signature's message leaves out quoted text."""
    fault = _fault(finding)
    told = Fault("", str(fault.get("message", "")), "", str(fault.get("cause_message", "")))
    text = root_message(told).split("\nfrom user code")[0] or finding.signature.minor
    return frozenset(re.findall(r"[A-Za-z_]{3,}", text[:400].lower()))


def _overlap(one: frozenset[str], other: frozenset[str]) -> float:
    """Jaccard index; two empty sets agree."""
    return len(one & other) / len(one | other) if one | other else 1.0
