"""Suspects of a running campaign: which are triaged now, which wait, and what is kept of them."""

from __future__ import annotations

import contextlib
import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from fuzzer.engines.template import CannotWrite, Written
from fuzzer.examine import CONFIRMATIONS, execute
from fuzzer.exits import UserError
from fuzzer.familiar import Familiar
from fuzzer.finding import Finding, State
from fuzzer.knowledge.retrieval import called
from fuzzer.observation import Observation
from fuzzer.policy.plan import Plan
from fuzzer.program import Program, ProgramError
from fuzzer.signature import signature
from fuzzer.triage import Origin, Triaged, confirmed_further, triage
from fuzzer.verdict import Verdict
from fuzzer.worker import TargetRefused, Worker, WorkerLost

if TYPE_CHECKING:
    from fuzzer.campaign import Campaign

#: Of all working time; suspects beyond wait, so that a flood of them cannot starve fuzzing.
_TRIAGE_SHARE = 0.4
#: Seconds of every worker that count as worked from the start, so that the first need not wait.
_TRIAGE_START = 120.0
_TRIAGE_PROGRAMS = 10.0  # without the clock a triage counts as so many programs


class Suspects:
    """Turns suspects into findings. Of a bucket one suspect is triaged, the others are counted.

    What is probably a finding again waits behind the others.
    One fresh process must show a fault before it is kept, the others are asked when no suspect waits.
    """

    def __init__(self, campaign: Campaign) -> None:
        self.campaign = campaign
        findings = campaign.findings.load_all()
        self._unsure = [item.signature.major for item in findings if _unsure(item)]
        self._familiar = Familiar(findings)
        self.triaging: set[str] = set()  # major signatures that some worker is busy with

    async def consider(
        self, worker: Worker, plan: Plan, written: Written, observation: Observation, verdict: Verdict
    ) -> Triaged | None:
        """Triage a suspect of a bucket not seen before; None where there is nothing to triage (or no time)."""
        if not verdict.is_suspect:
            return None
        major = signature(verdict, observation, called=called(written.program)).major
        bucket = self.campaign.state.buckets.get(major)
        if bucket is not None and (bucket.state != "new" or major in self.triaging):
            self.campaign.append({"t": "bucket", "major": major, "at": self.campaign.elapsed})
            if bucket.finding and self.campaign.directory.disk_state() == "ok":
                with contextlib.suppress(UserError):
                    self.campaign.findings.add_duplicate(bucket.finding, written.program.text)
            return None
        if not self._may_triage() or self._familiar.knows(major):
            self._keep_program(written.program)
            self.campaign.append(
                {"t": "bucket", "major": major, "program": written.program.id, "at": self.campaign.elapsed}
            )
            return None
        parents = (plan.seed, plan.donor) if plan.seed else ()
        origin = Origin(plan.number, self.campaign.elapsed, plan.writer, parents)
        return await self._triage(worker, written.program, observation, verdict, major, origin)

    async def triage_waiting(self, worker: Worker) -> bool:
        """Triage one suspect that had to wait, or make sure of a finding, when there is time; says whether it did."""
        if not self._may_triage():
            return False
        waiting = [item for item in self.campaign.state.waiting() if item[0] not in self.triaging]
        if not waiting:
            return await self._confirm_further(worker)
        major, program_id = min(waiting, key=lambda item: self._familiar.knows(item[0]))  # of equals the oldest
        self.triaging.add(major)
        try:
            program = self.campaign.program(program_id)
            observation, verdict = await execute(worker, program, coverage=False)
            if verdict.is_suspect:
                origin = Origin(seconds=self.campaign.elapsed)
                await self._triage(worker, program, observation, verdict, major, origin, count=0)
            elif not self.campaign.stopping:
                self._dismiss(major)
        except (CannotWrite, ProgramError):
            self._dismiss(major)
        except (WorkerLost, TargetRefused) as error:
            self.campaign.note("warning", f"harness error: {error}")
        finally:
            self.triaging.discard(major)
        return True

    async def _confirm_further(self, worker: Worker) -> bool:
        """Ask the fresh processes that the oldest finding still lacks; says whether there was one."""
        finding = None
        while self._unsure and finding is None:
            finding = self.campaign.findings.get(self._unsure.pop(0))
        if finding is None:
            return False
        started = time.monotonic()
        try:
            after = await confirmed_further(worker, finding)
        except (ProgramError, WorkerLost, TargetRefused) as error:
            self.campaign.note("warning", f"{finding.sig8} cannot be confirmed: {error}")
            return True
        if self.campaign.stopping:
            return True  # see ``_triage``
        major = finding.signature.major
        stored = self.campaign.findings.get(major)
        self.campaign.findings.save(replace(after, duplicates=stored.duplicates if stored else after.duplicates))
        told = {"state": "flaky"} if after.state is State.FLAKY else {}
        spent = _TRIAGE_PROGRAMS if self.campaign.options.no_clock else time.monotonic() - started
        was = "debatable" if finding.debatable else finding.state.value
        self.campaign.append(
            {"t": "sure", "finding": major, "was": was, **told, "triage": spent, "at": self.campaign.elapsed}
        )
        if told:
            self.campaign.note("finding", f"flaky after all: {finding.sig8}, {after.confirmations} of {after.attempts}")
        return True

    def _may_triage(self) -> bool:
        counters, count = self.campaign.state.counters, len(self.campaign.fleet.workers)
        working = self.campaign.elapsed * count
        if self.campaign.options.no_clock:
            working = counters.runs + counters.triage_seconds
        return counters.triage_seconds <= _TRIAGE_SHARE * max(working, _TRIAGE_START * count)

    async def _triage(
        self,
        worker: Worker,
        program: Program,
        observation: Observation,
        verdict: Verdict,
        major: str,
        origin: Origin,
        count: int = 1,
    ) -> Triaged | None:
        """``count``: how often the bucket is met by this; 0 for a suspect that was counted when it began to wait."""
        started = time.monotonic()
        self.triaging.add(major)
        folder = worker.folder / "confirm"
        try:
            triaged = await triage(
                worker,
                program,
                observation,
                verdict,
                folder,
                self.campaign.known_issues,
                origin,
                runs=CONFIRMATIONS if self.campaign.options.exit_on_finding else 1,
                clock=not self.campaign.options.no_clock,
            )
        finally:
            self.triaging.discard(major)
        if self.campaign.stopping:
            return None  # processes may have been killed under us: what shows now is no evidence
        spent = _TRIAGE_PROGRAMS if self.campaign.options.no_clock else time.monotonic() - started
        record: dict[str, Any] = {"t": "bucket", "major": major, "state": triaged.state, "at": self.campaign.elapsed}
        record |= {"triage": spent, "count": count}
        if triaged.finding is not None:
            record["finding"] = triaged.finding.signature.major
            record["new"] = self._keep(triaged.finding, triaged)
        self.campaign.append(record)
        self._take_slips(triaged)
        return triaged if record.get("new") or triaged.state == "dismissed" else None

    def _take_slips(self, triaged: Triaged) -> None:
        """Other faults that reduction met become suspects that wait for their turn."""
        for slip in triaged.slips:
            if slip.signature.major not in self.campaign.state.buckets and not self.campaign.stopping:
                self._keep_program(slip.program)
                waiting = {"major": slip.signature.major, "program": slip.program.id, "at": self.campaign.elapsed}
                self.campaign.append({"t": "bucket", **waiting})

    def _keep(self, finding: Finding, triaged: Triaged) -> bool:
        """Store a finding; False when one of its major signature is there already."""
        if self.campaign.findings.get(finding.signature.major) is not None:
            self.campaign.findings.add_duplicate(finding.signature.major, finding.text)
            return False
        folder = self.campaign.findings.save(finding, triaged.logs)
        self._familiar.add(finding)
        if _unsure(finding):
            self._unsure.append(finding.signature.major)
        what = triaged.state if triaged.state != "confirmed" else "FOUND"
        self.campaign.note("finding", f"{what}: {finding.kind.value} — {finding.reason[:120]} → {folder.name}")
        if self.campaign.options.exit_on_finding and triaged.state == "confirmed":
            self.campaign.stop("finding")
        return True

    def _keep_program(self, program: Program) -> None:
        self.campaign.corpus_files.add({"text": program.text, "meta": program.meta, "parents": []})

    def _dismiss(self, major: str) -> None:
        at = self.campaign.elapsed
        self.campaign.append({"t": "bucket", "major": major, "state": "dismissed", "count": 0, "at": at})


def _unsure(finding: Finding) -> bool:
    return finding.attempts < CONFIRMATIONS and finding.state is not State.FLAKY
