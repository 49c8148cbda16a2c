"""What "the same fault" means while reducing: kind, stage, root cause, and still past the gates that cost nothing."""

from __future__ import annotations

from dataclasses import dataclass

from fuzzer.examine import pass_cheap_gates, same_fault
from fuzzer.judge import judge
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.signature import Signature, culprits, signature
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker

#: Kinds whose signature is an exception: its place and message must stay.
_EXCEPTIONS = frozenset({Kind.COMPILE_ERROR, Kind.EXTRA_CHECK, Kind.EAGER_INTERNAL_ASSERT, Kind.MISSING_CHECK})

#: Different faults that are kept of one reduction.
_SLIPS = 8


@dataclass(frozen=True)
class Slip:
    """Another fault met on the way: not confirmed, past the cheap gates."""

    program: Program
    verdict: Verdict
    signature: Signature


class SameFault:
    """The predicate of a reduction: an execution a program, on one worker.

    Attributes:
        executions: how many programs ran.
        interpreted: kernels are interpreted, since the fault shows so as well (see ``try_interpreted``). What then was
            seen of a program is no evidence: run it again before it is believed.
        failed: those that showed the fault, in the order in which they ran: the smallest last.
        slips: other faults, the first program of each signature. What the operators of the smallest program that
            failed can do without others is left out: hardly another bug, rather this one as another shape shows it.
    """

    def __init__(self, worker: Worker, program: Program, observation: Observation, verdict: Verdict) -> None:
        self.worker = worker
        self.verdict = verdict
        self.signature = signature(verdict, observation)
        self.executions = 0
        self.interpreted = False
        self.failed: list[Program] = []
        self._seen: dict[str, tuple[Observation, Verdict]] = {program.id: (observation, verdict)}
        self._slips: dict[str, tuple[Slip, frozenset[str]]] = {}
        self._program = program

    async def __call__(self, program: Program) -> bool:
        return bool(await self.ask(program))

    async def try_interpreted(self, program: Program) -> None:
        """From now on interpret kernels, where ``program``, which failed, fails so too and has any: half the time."""
        step = self._seen[program.id][0].raw.get("cxx")
        if step is not None and not step.get("kernels"):
            return  # it fails before any kernel is compiled
        options = {"perturb": True, "interpret": True}
        seen = await self.worker.execute(program, "reduce", options, coverage=False)
        self.executions += 1
        judged = await pass_cheap_gates(program, seen, judge(seen, program.meta))
        kernels = seen.raw.get("interpreted", {}).get("kernels")
        self.interpreted = bool(kernels) and judged.is_suspect and self._is_same(judged, seen)

    async def ask(self, program: Program) -> bool | None:
        """Does the program show the fault? None where it cannot tell: eager refuses it, or it cannot be judged."""
        self.executions += 1
        options = {"perturb": True, **({"interpret": True} if self.interpreted else {})}
        seen = await self.worker.execute(program, "reduce", options, coverage=False)
        judged = judge(seen, program.meta)
        if not judged.is_suspect:
            return None if judged.kind in (Kind.INVALID, Kind.HARNESS_ERROR) else False
        # A smaller program can be rounding noise where the whole one is not: what one execution can tell is asked.
        judged = await pass_cheap_gates(program, seen, judged)
        if not judged.is_suspect:
            return False
        if self._is_same(judged, seen):
            self._seen[program.id] = (seen, judged)
            self.failed.append(program)
            return True
        self._keep(program, seen, judged)
        return False

    def _is_same(self, judged: Verdict, seen: Observation) -> bool:
        if not same_fault(self.verdict, judged) or judged.debatable not in ("", self.verdict.debatable):
            return False
        if self.verdict.debatable:
            return True  # what makes it debatable takes the dear gates to tell: asked of the result only
        return self.verdict.kind not in _EXCEPTIONS or signature(judged, seen).major == self.signature.major

    def _keep(self, program: Program, seen: Observation, judged: Verdict) -> None:
        key = signature(judged, seen)
        if judged.kind is Kind.MISSING_CHECK:
            return  # what reducing makes no longer fits, and every operator refuses in a dozen ways
        if not judged.debatable and len(self._slips) < _SLIPS and key.major != self.signature.major:
            self._slips.setdefault(key.major, (Slip(program, judged, key), culprits(seen.operators)))

    def seen(self, program: Program) -> tuple[Observation, Verdict]:
        """What a program that failed showed. Raises ``KeyError`` for one that did not."""
        return self._seen[program.id]

    @property
    def slips(self) -> tuple[Slip, ...]:
        smallest = self.failed[-1] if self.failed else self._program
        own = culprits(self._seen[smallest.id][0].operators)
        return tuple(slip for slip, operators in self._slips.values() if not operators or operators - own)
