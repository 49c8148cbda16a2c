"""A finding: a failure that a campaign saw, what is known about it, and the states it may go through."""

from __future__ import annotations

import contextlib
import hashlib
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from enum import Enum
from typing import Any

from fuzzer.faulty_line import call_at
from fuzzer.knowledge.retrieval import called
from fuzzer.observation import Observation
from fuzzer.program import Program, ProgramError
from fuzzer.signature import Signature
from fuzzer.verdict import Kind, Verdict

#: Format of ``finding.json``. 1: the first. Keys are only ever added within a number.
FORMAT = 1

#: Enough for a stack trace's end; the whole log lies beside the finding.
_LOG_TAIL = 4000
_LEAVES_KEPT = 4
_OPERATORS_KEPT = 200

#: Operators that the dispatcher adds by itself; they tell nothing about a program.
_BOOKKEEPING = frozenset({"aten.detach", "aten.alias", "aten.lift_fresh"})


class State(str, Enum):
    """Where a finding stands."""

    SUSPECT = "suspect"  # seen once
    CONFIRMED = "confirmed"  # k of n fresh processes agree
    FLAKY = "flaky"  # they do not
    REDUCED = "reduced"
    REPORTED = "reported"
    FIXED = "fixed"
    KNOWN = "known"  # an issue that is on the list of known ones
    IGNORED = "ignored"  # a person said why


#: Allowed moves besides staying. ``known`` and ``ignored`` are judgements, reachable from everywhere and
#: revocable; ``fixed`` may turn out not to be.
TRANSITIONS: Mapping[State, frozenset[State]] = {
    State.SUSPECT: frozenset({State.CONFIRMED, State.FLAKY}),
    State.FLAKY: frozenset({State.SUSPECT, State.CONFIRMED}),
    State.CONFIRMED: frozenset({State.REDUCED, State.REPORTED, State.FIXED, State.FLAKY}),
    State.REDUCED: frozenset({State.REPORTED, State.FIXED, State.FLAKY}),
    State.REPORTED: frozenset({State.FIXED}),
    State.FIXED: frozenset({State.CONFIRMED}),
    State.KNOWN: frozenset({State.SUSPECT, State.CONFIRMED, State.REDUCED, State.FIXED}),
    State.IGNORED: frozenset({State.SUSPECT, State.CONFIRMED, State.REDUCED}),
}

_JUDGEMENTS = frozenset({State.KNOWN, State.IGNORED})


@dataclass(frozen=True)
class Finding:
    """One failure and everything known about it. Immutable: ``moved`` and ``dataclasses.replace`` make new ones.

    Attributes:
        signature: equal major keys mean the same finding.
        debatable: why maintainers may call a real difference intended; empty for a plain bug.
        text: the whole program, the very text that ran.
        run, seconds: number of the execution and time since the campaign's start at which it was first seen.
        target: fingerprint of the target (``torch``, ``git``, ``python``, ``device``, ``cpu``, ``compiler`` …).
        confirmations: of ``attempts`` fresh processes, how many showed it again.
        gates: (gate, outcome) pairs of the verdict, in order.
        facts: ``leaves`` (worst first; those of the second call carry ``second``), ``faults`` by stage, ``end``,
            ``operators``, ``aliases``, ``generator`` (its state differs, no result does), ``log``: see
            ``essential_facts``.
        reduced: the smaller program, empty before reduction.
        known_issue: identifier of the known issue, where the state is ``known``.
        note: why it is ignored, or what a person remarked.
        duplicates: how many more programs showed the same major signature.
        triage: results of later steps: ``backend`` (first failing backend), ``bisect`` (what torch's own
            bisector named), ``reduction`` {executions, complete}, ``essential_features``, ``free_features``,
            ``untold_features``, ``variants`` {backend or option: kind}, ``versions`` {torch: kind}, ``kernel``
            (source that Inductor generated, where the fault may lie in it), ``environment`` (see
            ``fuzzer.environment``), ``replays``
            {torch: evidence, see ``fuzzer.recheck.Replay``}, ``group`` (names of findings that are the same bug),
            ``class`` {symptom, task, cause, reasons, by, verified} (see ``fuzzer.classify``; machine-made),
            ``similar`` [{number, title, link, score}] (imported issues, see ``fuzzer.nearest``), ``hypothesis``…
            All are optional: a finding has what triage came to.
    """

    signature: Signature
    kind: Kind
    text: str
    stage: str = ""
    reason: str = ""
    debatable: str = ""
    state: State = State.SUSPECT
    parents: tuple[str, ...] = ()
    engine: str = ""
    run: int = 0
    seconds: float = 0.0
    target: dict[str, Any] = field(default_factory=dict)
    confirmations: int = 0
    attempts: int = 0
    gates: tuple[tuple[str, str], ...] = ()
    facts: dict[str, Any] = field(default_factory=dict)
    reduced: str = ""
    known_issue: str = ""
    note: str = ""
    duplicates: int = 0
    triage: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", Kind(self.kind))
        object.__setattr__(self, "state", State(self.state))
        object.__setattr__(self, "parents", tuple(self.parents))
        object.__setattr__(self, "gates", tuple((str(gate), str(outcome)) for gate, outcome in self.gates))
        if not self.kind.is_fault:
            raise ValueError(f"a program whose kind is {self.kind.value!r} is no finding")
        if not 0 <= self.confirmations <= self.attempts:
            raise ValueError(f"{self.confirmations} confirmations of {self.attempts} attempts")
        if self.state is State.KNOWN and not self.known_issue:
            raise ValueError("a known finding names its issue")
        if self.state is State.IGNORED and not self.note:
            raise ValueError("an ignored finding says why in its note")

    @property
    def sig8(self) -> str:
        return self.signature.sig8

    @property
    def program_id(self) -> str:
        """Content address of the program, as ``Program.id``."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def operators(self) -> list[str]:
        """Distinct operators that the eager run dispatched, in order, without overloads and bookkeeping.

        Where eager dispatches none, or refuses the program: what the refused line calls, or else what the program does.
        """
        names = (".".join(name.split(".")[:2]) for name in self.facts.get("operators", ()))
        found = [name for name in dict.fromkeys(names) if name not in _BOOKKEEPING]
        line = int(self.facts.get("faults", {}).get("eager", {}).get("line") or 0)
        if found:
            return found
        refused = call_at(self.shown_text, line) if line else ""
        if refused:
            return [refused]
        with contextlib.suppress(ProgramError):
            return list(dict.fromkeys(called(Program.parse(self.shown_text))))
        return []

    @property
    def slug(self) -> str:
        """Readable part of the folder's name: kind and up to two operators, lower case, at most 48 characters."""
        words = [self.kind.value, *(name.split(".")[-1] for name in self.operators[-2:])]
        return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")[:48].strip("-")

    @property
    def shown_text(self) -> str:
        """The text a person should read: the reduced program where there is one."""
        return self.reduced or self.text

    def moved(self, state: State, *, known_issue: str = "", note: str = "") -> Finding:
        """The finding in another state (staying is allowed, so that triage can be repeated).

        Raises ``ValueError`` for a move that ``TRANSITIONS`` does not allow.
        """
        if not (state is self.state or state in TRANSITIONS[self.state] or state in _JUDGEMENTS):
            allowed = sorted(item.value for item in TRANSITIONS[self.state] | _JUDGEMENTS)
            raise ValueError(
                f"{self.sig8}: cannot go from {self.state.value} to {state.value}; from here: {', '.join(allowed)}"
            )
        return replace(
            self,
            state=state,
            known_issue=known_issue or (self.known_issue if state is State.KNOWN else ""),
            note=note or self.note,
        )

    def to_map(self) -> dict[str, Any]:
        """Plain data for ``finding.json``; ``program_id`` and ``sig8`` are there for readers, not read back."""
        plain: dict[str, Any] = {item.name: getattr(self, item.name) for item in fields(self)}
        plain |= {
            "format": FORMAT,
            "signature": {"major": self.signature.major, "minor": self.signature.minor},
            "sig8": self.sig8,
            "kind": self.kind.value,
            "state": self.state.value,
            "program_id": self.program_id,
            "parents": list(self.parents),
            "gates": [list(pair) for pair in self.gates],
            "facts": _json_safe(self.facts),
            "triage": _json_safe(self.triage),
        }
        return plain

    @classmethod
    def from_map(cls, plain: Mapping[str, Any]) -> Finding:
        """Read what ``to_map`` gave; unknown keys are left aside.

        Raises ``ValueError`` with one line for anything that is not a finding, or is one of a newer format.
        """
        if not isinstance(plain, Mapping) or not isinstance(plain.get("format"), int):
            raise ValueError("not a finding: no format number")
        if plain["format"] > FORMAT:
            raise ValueError(f"written by a newer Eddy (format {plain['format']}, this one reads {FORMAT})")
        known = {item.name for item in fields(cls)}
        try:
            values = {key: value for key, value in plain.items() if key in known}
            values["signature"] = Signature(plain["signature"]["major"], plain["signature"]["minor"])
            return cls(**values)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not a finding: {type(error).__name__} {error}") from None


def _json_safe(value: Any) -> Any:
    """The same with NaN and infinities as text, which JSON has no numbers for."""
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, Mapping):
        return {str(key): _json_safe(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_json_safe(item) for item in value]
    return value


def essential_facts(seen: Observation, verdict: Verdict | None = None) -> dict[str, Any]:
    """The part of an observation that a finding keeps: a few kilobytes, whatever the program produced.

    The leaf that the verdict rests on (``details["leaf"]``) comes first, the others by how wrong they are.
    """
    leaves = [dict(leaf) for leaf in seen.leaves]
    leaves += [{**leaf, "second": True} for leaf in seen.second_leaves]
    guilty = verdict.details.get("leaf", {}) if verdict else {}
    second = verdict is not None and verdict.stage == "second"
    leaves.sort(
        key=lambda leaf: (
            leaf.get("path") == guilty.get("path") and bool(leaf.get("second")) is second,
            _badness(leaf),
        ),
        reverse=True,
    )
    faults = {
        stage.name: {
            "type": stage.fault.type,
            "message": stage.fault.message,
            "cause_type": stage.fault.cause_type,
            "cause_message": stage.fault.cause_message,
            "frames": list(stage.fault.frames[-12:]),
            "line": stage.fault.line,
        }
        for stage in seen.stages
        if stage.fault
    }
    end = seen.end
    facts: dict[str, Any] = {
        "leaves": leaves[:_LEAVES_KEPT],
        "leaves_in_all": len(leaves),
        "faults": faults,
        "end": {"how": end.how, "signal": end.signal, "status": end.status, "stage": end.stage, "why": end.why},
        "operators": seen.operators[:_OPERATORS_KEPT],
        "seconds": {stage.name: round(stage.seconds, 3) for stage in seen.stages},
        "log": seen.log[-_LOG_TAIL:],
    }
    if verdict is not None and verdict.details.get("generator"):
        facts["generator"] = True
    if seen.raw.get("aliases"):
        facts["aliases"] = seen.raw["aliases"]
    return facts


def _badness(leaf: Mapping[str, Any]) -> tuple[float, float, float]:
    """Order of leaves: NaN and infinities on one side, then excess over eager's own error, then plain difference."""
    odd = float(leaf.get("nan_mismatch", 0)) + float(leaf.get("inf_mismatch", 0))
    excess = float(leaf.get("compiled_err", 0.0)) - float(leaf.get("eager_err", 0.0))
    return (min(odd, 1.0), excess, abs(float(leaf.get("differing", 0))))
