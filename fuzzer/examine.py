"""From a program to a judgement that can be trusted: execute, judge, gates, fresh processes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzzer import growth
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.gates import GATES, Gate, Suspect, apply_gate
from fuzzer.judge import judge, judge_all
from fuzzer.observation import Observation
from fuzzer.program import Program, ProgramError
from fuzzer.signature import Signature, signature
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, TargetRefused, Worker, WorkerOptions

#: Fresh processes that must all show a fault before it counts as sure.
CONFIRMATIONS = 3

#: Confirmation gets twice the limits of the campaign, so that a machine under load makes no hang.
_CONFIRM_LIMITS = {"stage_seconds": 120.0, "eager_seconds": 30.0, "total_seconds": 240.0}
_CANDIDATES = 6
_HANG_LIMITS = {"stage_seconds": 120.0, "total_seconds": 200.0}


@dataclass(frozen=True)
class Examined:
    """One program, executed and judged. ``first`` is the verdict before the gates."""

    program: Program
    observation: Observation
    first: Verdict
    verdict: Verdict

    @property
    def signature(self) -> Signature:
        return signature(self.verdict, self.observation)


@dataclass(frozen=True)
class Confirmation:
    """``k`` of ``n`` fresh processes showed the same kind of fault at the same stage."""

    k: int
    n: int
    observations: tuple[Observation, ...] = field(default=(), repr=False)

    @property
    def certain(self) -> bool:
        return self.k == self.n and self.n > 0


async def execute(
    worker: Worker, program: Program, coverage: bool = True, interpret: bool = False
) -> tuple[Observation, Verdict]:
    """Run and judge once; where eager kills the child, run again without eager to see what the compiled side does.

    With ``interpret`` generated kernels are interpreted (see ``harness.interpreter``) and what then looks like a fault
    is judged by another run, with compiled kernels: its observation is told, with the coverage of the first.
    """
    observation = await worker.execute(program, options={"interpret": True} if interpret else None, coverage=coverage)
    verdict = judge(observation, program.meta)
    if interpret and (verdict.is_suspect or verdict.kind is Kind.HARNESS_ERROR) and _interpreted(observation):
        first = observation
        observation = await worker.execute(program, coverage=False)
        told = {**first.raw.get("interpreted", {}), "suspect": verdict.kind.value}
        verdict = judge(observation, program.meta)
        told["cleared"] = not verdict.is_suspect
        raw = {**observation.raw, "interpreted": told}
        seconds, cpu = first.seconds + observation.seconds, first.cpu + observation.cpu
        observation = replace(observation, raw=raw, coverage=first.coverage, seconds=seconds, cpu=cpu)
    if verdict.kind is Kind.EAGER_CRASH and verdict.stage in ("eager", "eager_backward"):
        again = await worker.execute(program, "without eager", {"skip_eager": True}, coverage=coverage)
        how = "compiled dies as well" if again.end.how == "signal" else "compiled does not"
        fault = any(stage.fault for stage in again.stages)
        how = "compiled refuses" if fault and again.end.how == "done" else how
        verdict = replace(verdict, reason=f"{verdict.reason}; {how}", details={**verdict.details, "compiled": how})
    return observation, verdict


def _interpreted(observation: Observation) -> bool:
    """May an interpreted kernel have had a part in this? Also where the child died before it could tell."""
    told = observation.raw.get("interpreted")
    return told is None or bool(told.get("kernels") or told.get("refused"))


async def settle(
    worker: Worker, program: Program, observation: Observation, verdict: Verdict
) -> tuple[Program, Observation, Verdict]:
    """A suspect that another execution tells better: program, observation and verdict to go on with.

    A fault that showed only with Inductor's own generator: the program that asks for that generator. A hang: the same
    program with twice the time, and what it shows then.
    """
    if verdict.details.get("random_path"):
        inductor = {**program.meta.get("inductor_config", {}), "fallback_random": False}
        try:
            program = ProgramView.of(program).with_meta(inductor_config=inductor).to_program()
        except (ViewError, ProgramError):
            return program, observation, verdict
        observation, verdict = await execute(worker, program, coverage=False)
    elif verdict.kind is Kind.HANG:
        limits, plain = _hang_limits(program), {"plain": True}
        observation = await worker.execute(program, "persists", plain, coverage=False, limits=limits)
        verdict = judge(observation, program.meta)
    return program, observation, verdict


async def pass_gates(worker: Worker, program: Program, observation: Observation, verdict: Verdict) -> Verdict:
    """The verdict after all gates; each gate's outcome is recorded in it."""
    # A hang was run again already (see ``settle``): another such run would cost minutes and tell nothing new.
    variants = {"persists": observation} if observation.variant == "persists" else {}
    limits = _hang_limits(program) if verdict.kind in (Kind.HANG, Kind.SLOW_COMPILE) else None

    async def again(gate: Gate) -> Observation:
        if gate.options is None:
            return observation
        if gate.name not in variants:
            seen = await worker.execute(program, gate.name, gate.options, coverage=False, limits=limits)
            variants[gate.name] = seen
        return variants[gate.name]

    judged = await _sift(program, observation, verdict, GATES, again)
    return await _weigh_hang(worker, program, judged) if judged.kind is Kind.HANG else judged


def _hang_limits(program: Program) -> dict[str, Any]:
    """Twice what the first execution had, so that a machine under load makes no hang."""
    own = program.meta.get("timeout")
    return {"stage_seconds": 2.0 * own} if isinstance(own, (int, float)) else _HANG_LIMITS


async def _weigh_hang(worker: Worker, program: Program, verdict: Verdict) -> Verdict:
    """A hang in the compiler whose cost explodes with a parameter is a slow compile, with the growth as evidence."""
    if verdict.stage not in ("compile", "second"):
        return verdict
    points = await growth.measure(worker, program)
    if not growth.explodes(points):
        return verdict
    reason = f"compile time explodes with the parameters: {growth.told(points)} of their values"
    return replace(verdict, kind=Kind.SLOW_COMPILE, reason=reason, details={**verdict.details, "growth": points})


async def pass_cheap_gates(program: Program, observation: Observation, verdict: Verdict) -> Verdict:
    """The verdict after the gates that this one execution (made with ``perturb``) can answer."""

    async def again(gate: Gate) -> Observation:
        return observation

    cheap = tuple(gate for gate in GATES if gate.options in (None, {"perturb": True}))
    return await _sift(program, observation, verdict, cheap, again)


async def _sift(
    program: Program,
    observation: Observation,
    verdict: Verdict,
    gates: tuple[Gate, ...],
    again: Callable[[Gate], Awaitable[Observation]],
) -> Verdict:
    """Of several suspect leaves, the most severe that survives decides; plain faults before debatable ones."""
    debatable: Verdict | None = None
    dismissed: Verdict | None = None
    for candidate in _candidates(observation, verdict, program):
        suspect, alive = Suspect(candidate, observation, program.meta, program.text), True
        for gate in gates:
            if alive and gate.is_asked(suspect):
                suspect, alive = apply_gate(suspect, gate, await again(gate))
        if alive and not suspect.verdict.debatable:
            return suspect.verdict
        if alive:
            debatable = debatable or suspect.verdict
        dismissed = dismissed or suspect.verdict
    assert dismissed is not None  # there is always one candidate
    return debatable or dismissed


def _candidates(observation: Observation, verdict: Verdict, program: Program) -> list[Verdict]:
    """The suspects of an observation, most severe first; few, for values that differ often differ together."""
    if "leaf" not in verdict.details:
        return [verdict]
    found = [item for item in judge_all(observation, program.meta) if item.is_suspect]
    return found[:_CANDIDATES] or [verdict]


async def examine(worker: Worker, program: Program) -> Examined:
    """Execute, judge, and put a suspect through the gates."""
    observation, first = await execute(worker, program)
    program, observation, first = await settle(worker, program, observation, first)
    verdict = await pass_gates(worker, program, observation, first) if first.is_suspect else first
    return Examined(program, observation, first, verdict)


async def confirm(
    target: Target, folder: Path, cache: Path, program: Program, verdict: Verdict, runs: int, plant: str | None = None
) -> Confirmation:
    """Run in ``runs`` fresh interpreters, without coverage, with twice the limits; count how often the fault shows."""
    seen: list[Observation] = []
    shown = 0
    for number in range(runs):
        options = WorkerOptions(coverage=(), plant=plant, limits=_CONFIRM_LIMITS, warm=False)
        fresh = Worker(target, folder / f"fresh-{number}", options, cache=cache)
        try:
            await fresh.start()
            observation, again = await execute(fresh, program, coverage=False)
        except TargetRefused:
            continue
        finally:
            await fresh.stop()
            fresh.discard()
        seen.append(observation)
        shown += same_fault(verdict, again)
    return Confirmation(shown, len(seen), tuple(seen))


def same_fault(one: Verdict, other: Verdict) -> bool:
    """The same kind at the same stage. Crashes may move between stages and signals: heap corruption does."""
    slow = {Kind.HANG, Kind.SLOW_COMPILE}
    if one.kind is not other.kind and not {one.kind, other.kind} <= slow:
        return False
    loose = (Kind.CRASH, Kind.EAGER_CRASH, Kind.HANG, Kind.SLOW_COMPILE)
    return one.kind in loose or one.stage == other.stage
