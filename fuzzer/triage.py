"""From a suspect to a finding: gates, reduction, fresh processes. Used inside the campaign, one suspect at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.bisect import first_failing_backend, torch_bisect
from fuzzer.examine import Confirmation, confirm, pass_cheap_gates, pass_gates, same_fault, settle_random_path
from fuzzer.finding import Finding, State, essential_facts
from fuzzer.judge import judge
from fuzzer.known_issues import KnownIssues
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.reduce import reduce_program
from fuzzer.signature import Signature, short_operator, signature
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker

#: Fresh processes that must all show a fault.
CONFIRMATIONS = 3

#: Executions that reducing may take; a debatable difference is worth a third.
_BUDGET, _DEBATABLE_BUDGET = 20, 7

#: Operators that torch adds around others; they name no culprit.
_INCIDENTAL = frozenset({"detach", "alias", "clone", "lift_fresh", "view", "_to_copy", "t", "transpose", "expand"})


@dataclass(frozen=True)
class Triaged:
    """What became of a suspect. ``state``: dismissed | flaky | confirmed | debatable | known."""

    state: str
    verdict: Verdict
    finding: Finding | None = None
    logs: tuple[str, ...] = ()


@dataclass(frozen=True)
class Origin:
    """Where a suspect came from, for the finding's record."""

    run: int = 0
    seconds: float = 0.0
    engine: str = ""
    parents: tuple[str, ...] = ()


async def triage(
    worker: Worker,
    program: Program,
    observation: Observation,
    verdict: Verdict,
    folder: Path,
    known: KnownIssues,
    origin: Origin,
    runs: int = CONFIRMATIONS,
) -> Triaged:
    """Gates, reduction, confirmation, known issues. ``folder`` is scratch for the fresh processes."""
    program, observation, verdict = await settle_random_path(worker, program, observation, verdict)
    if not verdict.is_suspect:
        return Triaged("dismissed", verdict)
    judged = await pass_gates(worker, program, observation, verdict)
    if not judged.is_suspect:
        return Triaged("dismissed", judged)
    reduced, seen, judged = await _reduced(worker, program, observation, judged)
    fresh = await confirm(worker.target, folder, worker.cache, reduced, judged, runs, worker.options.plant)
    if not fresh.certain and reduced is not program:
        # The smaller program may be on the edge where the whole one is not.
        reduced, seen = program, observation
        fresh = await confirm(worker.target, folder, worker.cache, program, judged, runs, worker.options.plant)
    located: dict[str, Any] = await _located(worker, reduced, judged) if fresh.certain else {}
    finding = _finding(worker, program, reduced, seen, judged, fresh, origin, located)
    logs = tuple(item.log for item in fresh.observations)
    if not fresh.certain:
        return Triaged("flaky", judged, finding.moved(State.FLAKY), logs)
    finding = finding.moved(State.CONFIRMED)
    issue = _known_issue(known, finding, seen, worker)
    if issue:
        return Triaged("known", judged, finding.moved(State.KNOWN, known_issue=issue), logs)
    return Triaged("debatable" if judged.debatable else "confirmed", judged, finding, logs)


async def _located(worker: Worker, program: Program, verdict: Verdict) -> dict[str, Any]:
    """The first failing backend, and what torch's own bisector names (for faults of Inductor and its passes)."""
    backend = await first_failing_backend(worker, program, verdict)
    bisected: dict[str, Any] = {}
    if backend in ("decomp", "inductor") and not verdict.debatable:
        bisected = await torch_bisect(worker, program, verdict)
    return {"backend": backend, "bisect": bisected}


async def _reduced(
    worker: Worker, program: Program, observation: Observation, verdict: Verdict
) -> tuple[Program, Observation, Verdict]:
    """The smallest program with the same fault that still passes the gates, its observation and verdict."""
    if verdict.kind in (Kind.HANG, Kind.SLOW_COMPILE):
        return program, observation, verdict  # every try would cost a whole timeout
    last: dict[str, tuple[Observation, Verdict]] = {program.id: (observation, verdict)}

    async def fails(candidate: Program) -> bool:
        seen = await worker.execute(candidate, "reduce", {"perturb": True}, coverage=False)
        judged = judge(seen, candidate.meta)
        if not same_fault(verdict, judged):
            return False
        if verdict.kind is Kind.COMPILE_ERROR and signature(judged, seen).major != major:
            return False
        # A smaller program can be rounding noise where the whole one is not: what one execution can tell is asked.
        judged = await pass_cheap_gates(candidate, seen, judged)
        if not judged.is_suspect or (judged.debatable and not verdict.debatable):
            return False
        last[candidate.id] = (seen, judged)
        return True

    major = signature(verdict, observation).major
    smallest = await reduce_program(program, fails, _DEBATABLE_BUDGET if verdict.debatable else _BUDGET)
    if smallest is program:
        return program, observation, verdict
    seen, judged = last[smallest.id]
    judged = await pass_gates(worker, smallest, seen, judge(seen, smallest.meta))
    return (smallest, seen, judged) if judged.is_suspect else (program, observation, verdict)


def _finding(
    worker: Worker,
    program: Program,
    reduced: Program,
    seen: Observation,
    verdict: Verdict,
    fresh: Confirmation,
    origin: Origin,
    located: dict[str, Any],
) -> Finding:
    return Finding(
        signature=final_signature(verdict, seen, located.get("bisect", {})),
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
        facts=essential_facts(seen, verdict),
        triage=located,
        reduced=reduced.text if reduced.text != program.text else "",
    )


def final_signature(verdict: Verdict, seen: Observation, bisected: Mapping[str, Any]) -> Signature:
    """The signature after reduction.

    For silent faults the culprit is what torch's own bisector named, else the operators that are left; with the dtype
    of the value, for one lowering has several bugs.
    """
    leaf: dict[str, Any] = verdict.details.get("leaf", {})
    dtype = (leaf.get("eager") or {}).get("dtype", "")
    names = {short_operator(name) for name in seen.operators}
    culprit = ",".join(sorted(names - _INCIDENTAL) or sorted(names))
    if bisected.get("what"):
        culprit = f"{bisected['subsystem']} {bisected['what']}"
    return signature(verdict, seen, culprit=f"{culprit} {dtype}".strip())


def _known_issue(known: KnownIssues, finding: Finding, seen: Observation, worker: Worker) -> str:
    dtypes = {str(row[0]) for op in seen.ops for row in [*op.get("tensors", []), *op.get("outputs", [])]}
    torch = str(worker.ready.get("target", {}).get("torch", ""))
    cause = f"{finding.signature.minor}\n{finding.reason}"
    match = known.match(finding.kind, seen.operators, sorted(dtypes), cause, finding.shown_text, torch)
    return match.id if match else ""
