"""From a suspect to a finding: gates, reduction, fresh processes. Used inside the campaign, one suspect at a time."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fuzzer.bisect import first_failing_backend, torch_bisect
from fuzzer.examine import CONFIRMATIONS, Confirmation, confirm, pass_gates, same_fault, settle
from fuzzer.finding import TRANSITIONS, Finding, State, essential_facts
from fuzzer.judge import judge
from fuzzer.knowledge.retrieval import called
from fuzzer.known_issues import KnownIssues
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.reduce import SameFault, Slip, reduce_program
from fuzzer.signature import Signature, culprits, signature
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker

#: Executions that reducing may take; a debatable difference is worth a third.
_BUDGET, _DEBATABLE_BUDGET = 20, 7

#: Seconds after which the reduction of one suspect tries nothing more: a program that runs for 15 s would hold a worker
#: for as long as thirty others take together.
_SECONDS = 120.0

#: Programs of a reduction that are put through all gates, until one passes.
_GATED = 4


@dataclass(frozen=True)
class Triaged:
    """What became of a suspect. ``state``: dismissed | flaky | confirmed | debatable | known.

    ``slips`` are other faults met while reducing: suspects of their own, not confirmed.
    """

    state: str
    verdict: Verdict
    finding: Finding | None = None
    logs: tuple[str, ...] = ()
    slips: tuple[Slip, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where a suspect came from, for the finding's record."""

    run: int = 0
    seconds: float = 0.0
    engine: str = ""
    parents: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reduced:
    """A reduced program with what it showed. ``complete``: no pass had anything left to try within the budget."""

    program: Program
    observation: Observation
    verdict: Verdict
    executions: int = 0
    complete: bool = False
    slips: tuple[Slip, ...] = ()

    def told(self) -> dict[str, Any]:
        """For ``Finding.triage["reduction"]``."""
        return {"executions": self.executions, "complete": self.complete}


async def triage(
    worker: Worker,
    program: Program,
    observation: Observation,
    verdict: Verdict,
    folder: Path,
    known: KnownIssues,
    origin: Origin,
    runs: int = CONFIRMATIONS,
    clock: bool = True,
) -> Triaged:
    """Gates, reduction, confirmation, known issues. ``folder`` is scratch for the fresh processes.

    Without the ``clock`` nothing depends on how long anything takes.
    """
    program, observation, verdict = await settle(worker, program, observation, verdict)
    if not verdict.is_suspect:
        return Triaged("dismissed", verdict)
    judged = await pass_gates(worker, program, observation, verdict)
    if not judged.is_suspect:
        return Triaged("dismissed", judged)
    small = await reduced(worker, program, observation, judged, seconds=_SECONDS if clock else math.inf)
    fresh = await _shown_again(worker, folder, small.program, small.verdict, runs)
    if not fresh.certain and small.program is not program:
        # The smaller program may be on the edge where the whole one is not.
        small = Reduced(program, observation, judged, small.executions, small.complete, small.slips)
        fresh = await _shown_again(worker, folder, program, judged, runs)
    found: dict[str, Any] = await located(worker, small.program, small.verdict) if fresh.certain else {}
    finding = _finding(worker, program, small, fresh, origin, found)
    logs = tuple(item.log for item in fresh.observations)
    if not fresh.certain:
        return Triaged("flaky", small.verdict, finding.moved(State.FLAKY), logs, small.slips)
    finding = finding.moved(State.CONFIRMED)
    issue = _known_issue(known, finding, small.observation, worker)
    if issue:
        return Triaged("known", small.verdict, finding.moved(State.KNOWN, known_issue=issue), logs, small.slips)
    state = "debatable" if small.verdict.debatable else "confirmed"
    return Triaged(state, small.verdict, finding, logs, small.slips)


async def _shown_again(worker: Worker, folder: Path, program: Program, verdict: Verdict, runs: int) -> Confirmation:
    """Ask ``runs`` fresh processes; where one does not show it, ``CONFIRMATIONS``: never, or now and then?"""
    plant = worker.options.plant
    fresh = await confirm(worker.target, folder, worker.cache, program, verdict, runs, plant)
    if fresh.certain or runs >= CONFIRMATIONS:
        return fresh
    more = await confirm(worker.target, folder, worker.cache, program, verdict, CONFIRMATIONS - runs, plant)
    return Confirmation(fresh.k + more.k, fresh.n + more.n, fresh.observations + more.observations)


async def confirmed_further(worker: Worker, finding: Finding) -> Finding:
    """The finding after more fresh processes, ``CONFIRMATIONS`` in all; flaky where one does not show it.

    Raises:
        ProgramError: its text is no program.
    """
    program = Program.parse(finding.shown_text, finding.sig8)
    wanted = CONFIRMATIONS - finding.attempts
    verdict = Verdict(finding.kind, finding.stage)
    folder = worker.folder / "confirm"
    fresh = await confirm(worker.target, folder, worker.cache, program, verdict, wanted, worker.options.plant)
    asked = replace(finding, confirmations=finding.confirmations + fresh.k, attempts=finding.attempts + fresh.n)
    flaky = fresh.k < fresh.n and State.FLAKY in TRANSITIONS[finding.state]
    return asked.moved(State.FLAKY) if flaky else asked


async def located(worker: Worker, program: Program, verdict: Verdict) -> dict[str, Any]:
    """The first failing backend, and what torch's own bisector names (for faults of Inductor and its passes)."""
    backend = await first_failing_backend(worker, program, verdict)
    bisected: dict[str, Any] = {}
    if backend in ("decomp", "inductor") and not verdict.debatable:
        bisected = await torch_bisect(worker, program, verdict)
    return {"backend": backend, "bisect": bisected}


async def reduced(
    worker: Worker,
    program: Program,
    observation: Observation,
    verdict: Verdict,
    budget: int = 0,
    enough: Callable[[], bool] = lambda: False,
    seconds: float = math.inf,
) -> Reduced:
    """The smallest program found with the same fault that still passes the gates, what it showed, and other faults.

    ``budget`` is in executions; 0: what a running campaign can afford. ``enough`` ends it early; no try begins after
    ``seconds``.
    """
    if verdict.kind in (Kind.HANG, Kind.SLOW_COMPILE):
        return Reduced(program, observation, verdict, 0, True)  # every try would cost a whole timeout
    budget = budget or (_DEBATABLE_BUDGET if verdict.debatable else _BUDGET)
    same = SameFault(worker, program, observation, verdict)
    deadline = time.monotonic() + seconds
    await same.try_interpreted(program)
    result = await reduce_program(program, same, budget, lambda: enough() or time.monotonic() > deadline)
    counts = (result.executions, result.complete, same.slips)
    best = Reduced(program, observation, verdict, *counts)
    # The cheap gates let through what the dear ones dismiss. Where they dismiss the smallest, the steps that led to it
    # are bisected for the last one that they keep.
    steps = same.failed
    low, high = 0, len(steps)  # steps before ``low`` pass
    probe = high - 1
    for _try in range(_GATED):
        if not low <= probe < high:
            break
        seen, _cheaply = same.seen(steps[probe])
        if same.interpreted:
            seen = await worker.execute(steps[probe], coverage=False)
        judged = judge(seen, steps[probe].meta)
        if judged.is_suspect:
            judged = await pass_gates(worker, steps[probe], seen, judged)
        kept = judged.is_suspect and (not same.interpreted or same_fault(verdict, judged))
        if kept and not (judged.debatable and not verdict.debatable):
            best, low = Reduced(steps[probe], seen, judged, *counts), probe + 1
        else:
            high = probe
        probe = (low + high) // 2
    return best


def _finding(
    worker: Worker,
    program: Program,
    small: Reduced,
    fresh: Confirmation,
    origin: Origin,
    found: dict[str, Any],
) -> Finding:
    verdict = small.verdict
    return Finding(
        signature=final_signature(verdict, small.observation, found.get("bisect", {}), small.program),
        kind=verdict.kind,
        text=program.text,
        stage=verdict.stage,
        reason=verdict.reason,
        debatable=verdict.debatable,
        parents=origin.parents,
        engine=origin.engine,
        run=origin.run,
        seconds=origin.seconds,
        target=dict(worker.ready.get("target", {})),
        confirmations=fresh.k,
        attempts=fresh.n,
        gates=verdict.gates,
        facts=essential_facts(small.observation, verdict),
        triage={**found, "reduction": small.told()},
        reduced=small.program.text if small.program.text != program.text else "",
    )


def final_signature(verdict: Verdict, seen: Observation, bisected: Mapping[str, Any], program: Program) -> Signature:
    """The signature after reduction.

    For silent faults the culprit is what torch's own bisector named, else the operators that are left; with the dtype
    of the value, for one lowering has several bugs.
    """
    leaf: dict[str, Any] = verdict.details.get("leaf", {})
    dtype = (leaf.get("eager") or {}).get("dtype", "")
    culprit = ",".join(sorted(culprits(seen.operators)))
    if bisected.get("what"):
        culprit = f"{bisected['subsystem']} {bisected['what']}"
    return signature(verdict, seen, f"{culprit} {dtype}".strip(), called(program))


def _known_issue(known: KnownIssues, finding: Finding, seen: Observation, worker: Worker) -> str:
    dtypes = {str(row[0]) for op in seen.ops for row in [*op.get("tensors", []), *op.get("outputs", [])]}
    torch = str(worker.ready.get("target", {}).get("torch", ""))
    cause = f"{finding.signature.minor}\n{finding.reason}"
    match = known.match(finding.kind, seen.operators, sorted(dtypes), cause, finding.shown_text, torch)
    return match.id if match else ""
