"""The version matrix: findings replayed on other builds of torch, and what that says about them."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuzzer.examine import examine, same_fault
from fuzzer.finding import TRANSITIONS, Finding, State
from fuzzer.program import Program, ProgramError
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker


@dataclass(frozen=True)
class Replay:
    """One finding on one build. ``same``: the same kind of fault at the same stage."""

    torch: str
    git: str
    kind: str
    stage: str
    reason: str
    debatable: str
    same: bool
    date: str

    def to_map(self) -> dict[str, Any]:
        """Evidence as ``Finding.triage["replays"]`` keeps it."""
        return dict(self.__dict__)


async def replay(worker: Worker, finding: Finding) -> Replay | None:
    """Run the smallest program of a finding, gates included; None where its text is no program any more.

    Raises:
        WorkerLost, TargetRefused: nothing was learnt.
    """
    try:
        program = Program.parse(finding.shown_text, finding.sig8)
    except ProgramError:
        return None
    seen = await examine(worker, program)
    verdict, target = seen.verdict, worker.ready.get("target", {})
    return Replay(
        torch=str(target.get("torch", "")),
        git=str(target.get("git", "")),
        kind=verdict.kind.value,
        stage=verdict.stage,
        reason=verdict.reason[:200],
        debatable=verdict.debatable,
        same=verdict.is_suspect and same_fault(Verdict(finding.kind, finding.stage), verdict),
        date=time.strftime("%Y-%m-%d"),
    )


def with_replays(finding: Finding, replays: Sequence[Replay]) -> Finding:
    """The finding with what was seen, and its state moved where the newest build says so.

    ``fixed``: it passes on the newest of these builds, which is not the one that it was found on, nor older. A finding
    that counted as fixed and fails there again is ``confirmed`` again.
    """
    if not replays:
        return finding
    versions = {**finding.triage.get("versions", {}), **{item.torch: item.kind for item in replays}}
    evidence = {**finding.triage.get("replays", {}), **{item.torch: item.to_map() for item in replays}}
    ordered = {name: versions[name] for name in sorted(versions, key=version_key)}
    finding = replace(finding, triage={**finding.triage, "versions": ordered, "replays": evidence})
    newest = max(replays, key=lambda item: version_key(item.torch))
    if Kind(newest.kind) is Kind.PASS and _later(newest, finding) and State.FIXED in TRANSITIONS[finding.state]:
        return finding.moved(State.FIXED, note=f"passes on torch {newest.torch} ({newest.date})")
    if newest.same and finding.state is State.FIXED:
        return finding.moved(State.CONFIRMED, note=f"fails again on torch {newest.torch} ({newest.date})")
    return finding


def _later(seen: Replay, finding: Finding) -> bool:
    found = (str(finding.target.get("torch", "")), str(finding.target.get("git", "")))
    return (seen.torch, seen.git) != found and version_key(seen.torch) >= version_key(found[0])


def version_key(version: str) -> tuple[tuple[int, ...], int, str]:
    """Order of torch versions: numbers first; ``2.14.0.dev…`` and ``a0`` come before the release."""
    numbers = re.match(r"\d+(\.\d+)*", version)
    parts = tuple(int(part) for part in numbers[0].split(".")) if numbers else ()
    rest = version[numbers.end() :] if numbers else version
    early = bool(re.match(r"\.?(dev|a|b|rc)", rest))
    return (parts, 0 if early else 1, rest)
