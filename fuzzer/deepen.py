"""What a finding still lacks, done step by step: smaller program, location, essential features, ablation.

Steps are resumable: each fills its own keys of ``Finding.triage``, and a finding that has them all is left alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzer.environment import collect_env
from fuzzer.essential import StillFails, essential_features
from fuzzer.examine import CONFIRMATIONS, confirm, examine
from fuzzer.features.detect import detect
from fuzzer.finding import Finding, State, essential_facts
from fuzzer.observation import Observation
from fuzzer.program import Program, ProgramError
from fuzzer.reduce import SameFault, Slip
from fuzzer.triage import confirmed_further, located, reduced
from fuzzer.variants import run_variants
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker

#: Executions of a reduction, when nothing else waits for the worker; a debatable difference is worth a third.
BUDGET, DEBATABLE_BUDGET = 150, 50

#: Seconds of a reduction. The median takes 8 s; what is not small by then hardly becomes so.
_SECONDS = 300.0

#: Of generated code, in a report.
KERNEL_LINES = 60

Enough = Callable[[], bool]


@dataclass
class Work:
    """One finding under work. ``slips`` are other faults met on the way, suspects of their own."""

    worker: Worker
    finding: Finding
    family_of: Callable[[str], str]
    enough: Enough
    slips: list[Slip] = field(default_factory=list)
    shown: tuple[Program, Observation, Verdict] | None = None  # the smallest program as it fails now

    def note(self, **facts: Any) -> None:
        """Add to what triage knows of the finding."""
        self.finding = replace(self.finding, triage={**self.finding.triage, **facts})


@dataclass(frozen=True)
class Step:
    """``lacks`` says whether the finding wants it; ``run`` does it, and notes nothing when it was cut short."""

    name: str
    lacks: Callable[[Finding], bool]
    run: Callable[[Work], Awaitable[None]]


async def reproduce(work: Work) -> bool:
    """Run the smallest program once more, gates included: does it still fail in the same way?

    A worker that was warmed may not show what fresh processes did; the finding is then left as it is. Where the gates
    know by now why the difference is debatable, the finding becomes so.
    """
    try:
        program = Program.parse(work.finding.shown_text, work.finding.sig8)
    except ProgramError:
        return False
    seen = await examine(work.worker, program)
    if not seen.verdict.is_suspect or seen.verdict.kind is not work.finding.kind:
        return False
    work.shown = (seen.program, seen.observation, seen.verdict)
    if seen.verdict.debatable and not work.finding.debatable:
        work.finding = replace(work.finding, debatable=seen.verdict.debatable, gates=seen.verdict.gates)
    return True


async def _reduce(work: Work) -> None:
    assert work.shown is not None
    program, observation, verdict = work.shown
    budget = DEBATABLE_BUDGET if verdict.debatable else BUDGET
    small = await reduced(work.worker, program, observation, verdict, budget, work.enough, _SECONDS)
    work.slips += small.slips
    before = work.finding.triage.get("reduction", {}).get("executions", 0)
    told = {**small.told(), "executions": small.executions + before}
    # A budget that is spent counts as done as well: the same passes would only spend it again.
    if not small.complete and not work.enough():
        told["complete"] = True
    if small.program is program:
        work.note(reduction=told)
        return
    folder = work.worker.folder / "confirm"
    fresh = await confirm(
        work.worker.target,
        folder,
        work.worker.cache,
        small.program,
        small.verdict,
        CONFIRMATIONS,
        work.worker.options.plant,
    )
    if not fresh.certain:  # on the edge: the larger one stays
        work.note(reduction=told)
        return
    work.shown = (small.program, small.observation, small.verdict)
    work.finding = replace(
        work.finding,
        reduced=small.program.text,
        stage=small.verdict.stage,
        reason=small.verdict.reason,
        gates=small.verdict.gates,
        confirmations=fresh.k,
        attempts=fresh.n,
        facts=essential_facts(small.observation, small.verdict),
    )
    work.note(reduction=told)


async def _confirm(work: Work) -> None:
    work.finding = await confirmed_further(work.worker, work.finding)


async def _locate(work: Work) -> None:
    assert work.shown is not None
    program, _observation, verdict = work.shown
    work.note(**await located(work.worker, program, verdict))


async def _find_essential(work: Work) -> None:
    assert work.shown is not None
    program, observation, verdict = work.shown
    realised = detect(program, observation, work.family_of)
    same = SameFault(work.worker, program, observation, verdict)
    found = await essential_features(program, realised, StillFails(same, observation), work.enough)
    work.slips += same.slips
    if found is not None:
        work.note(**found.to_map())


async def _ablate(work: Work) -> None:
    assert work.shown is not None
    program, _observation, verdict = work.shown
    seen = await run_variants(work.worker, program, verdict.kind, work.enough)
    if seen is not None:
        work.note(variants=seen)


async def _show_kernel(work: Work) -> None:
    assert work.shown is not None
    program, _observation, _verdict = work.shown
    seen = await work.worker.execute(program, "sources", {"sources": True, "observe": False}, coverage=False)
    lines = "\n\n".join(seen.raw.get("sources", ())).splitlines()
    more = [f"// and {len(lines) - KERNEL_LINES} more lines"] if len(lines) > KERNEL_LINES else []
    work.note(kernel="\n".join([*lines[:KERNEL_LINES], *more]))


async def _tell_environment(work: Work) -> None:
    target = work.worker.target
    told = "" if target.fake else await asyncio.to_thread(collect_env, target.python)
    # A finding of another torch, shown again on this one, keeps the target that it was seen on.
    own = f"PyTorch version: {work.finding.target.get('torch')}" in told.splitlines()
    work.note(environment=told if own else "")


def _generated(finding: Finding) -> bool:
    """Is it Inductor that fails, and what it generates that is at fault, or refused?"""
    refused = finding.kind is Kind.COMPILE_ERROR and "CppCompileError" not in str(finding.facts.get("faults"))
    return finding.triage.get("backend") == "inductor" and not refused and finding.kind is not Kind.METADATA


def _slow(finding: Finding) -> bool:
    """Each execution would cost a whole time limit."""
    return finding.kind in (Kind.HANG, Kind.SLOW_COMPILE)


STEPS: tuple[Step, ...] = (
    Step("reduce", lambda f: not _slow(f) and not f.triage.get("reduction", {}).get("complete"), _reduce),
    Step("confirm", lambda f: f.attempts < CONFIRMATIONS, _confirm),
    Step("locate", lambda f: not _slow(f) and "backend" not in f.triage, _locate),
    Step("features", lambda f: not _slow(f) and "essential_features" not in f.triage, _find_essential),
    Step("variants", lambda f: not _slow(f) and not f.debatable and "variants" not in f.triage, _ablate),
    Step("kernel", lambda f: not _slow(f) and _generated(f) and "kernel" not in f.triage, _show_kernel),
    Step("environment", lambda f: "environment" not in f.triage, _tell_environment),
)


def lacking(finding: Finding) -> tuple[Step, ...]:
    """Steps that a finding still wants, in order. Flaky, fixed and ignored ones want none."""
    if finding.state in (State.FLAKY, State.FIXED, State.IGNORED, State.SUSPECT):
        return ()
    return tuple(step for step in STEPS if step.lacks(finding))
