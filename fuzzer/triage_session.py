"""``eddy triage DIR``: everything that a campaign had no time for, for every suspect and finding, resumably.

Holds the campaign's lock, and writes to its journal as the campaign itself would, so that resuming the campaign and
triaging again both start from what was done.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from fuzzer.conclude import conclude
from fuzzer.deepen import Step, Work, lacking, reproduce
from fuzzer.examine import execute
from fuzzer.familiar import Familiar
from fuzzer.features.space import FeatureSpace
from fuzzer.finding import Finding, State
from fuzzer.judge import judge
from fuzzer.knowledge.operators import Operators
from fuzzer.known_issues import KnownIssues
from fuzzer.labels import Label, automatic
from fuzzer.loop_state import LoopState
from fuzzer.program import Program, ProgramError
from fuzzer.recheck import Replay, replay, with_replays
from fuzzer.reduce import Slip
from fuzzer.severity import by_severity
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import Journal
from fuzzer.store.labels import LabelStore
from fuzzer.store.stats import Events, read_stats, write_stats
from fuzzer.triage import Origin, Triaged, triage
from fuzzer.worker import Target, TargetRefused, Worker, WorkerLost, WorkerOptions

#: Labels after which there is nothing to find out.
_SETTLED = frozenset({Label.NOT_A_BUG, Label.DUPLICATE_OF, Label.IGNORED})

#: New suspects that reductions of one session may add.
_SLIPS = 20


@dataclass(frozen=True)
class SessionOptions:
    """``seconds``: no step begins after so many; 0: no limit. ``issues``: an index of imported issues, where it is not
    the campaign's own ``issues.sqlite``; ``workers``: fork servers of the first target."""

    targets: tuple[Target, ...] = (Target(),)
    plant: str = ""
    seconds: float = 0.0
    limits: dict[str, Any] = field(default_factory=dict)
    issues: Path | None = None
    workers: int = 1


@dataclass
class Done:
    """What a session did, and what is left for the next."""

    suspects: int = 0  # suspects of the campaign that were triaged
    new: int = 0  # findings among them that were not there before
    findings: int = 0  # findings that had steps taken
    steps: int = 0
    slips: int = 0  # other faults met while reducing, added as suspects
    replays: int = 0
    lost: int = 0  # findings that did not show this time, so that no step could be taken
    left: int = 0  # suspects and findings that still want something
    complete: bool = False

    def to_map(self) -> dict[str, Any]:
        return dict(self.__dict__)


class TriageSession:
    """One run of ``eddy triage DIR``. Needs the directory's lock for its whole life."""

    def __init__(
        self,
        directory: CampaignDirectory,
        options: SessionOptions,
        operators: Operators,
        known_issues: KnownIssues,
        report: Callable[[str, str], None] = lambda kind, text: None,
    ) -> None:
        self.directory = directory
        self.options = options
        self.known_issues = known_issues
        self.report = report
        self.findings = FindingStore(directory)
        self.corpus_files = CorpusFiles(directory.corpus)
        self.events = Events(directory.events)
        self.journal = Journal(directory.journal)
        self.state = LoopState(operators, FeatureSpace.load(), 0)
        self.done = Done()
        self.elapsed = 0.0  # of the campaign: triaging afterwards adds nothing to it
        self.stopped = False
        self._deadline = time.monotonic() + options.seconds if options.seconds else float("inf")
        self._refused: set[str] = set()  # suspects and findings that led nowhere in this session
        self._under_way: set[str] = set()  # majors that some worker is at
        self._not_hastened: set[str] = set()  # majors that did not show with the hastened toolchain
        self._replay()
        for warning in (*self.journal.warnings, *self.corpus_files.warnings, *self.findings.warnings):
            self.note("warning", warning)

    def _replay(self) -> None:
        """Only what became of suspects: the rest of the state decides what to run next, which nobody asks here."""
        for _after, record in self.journal.replay():
            self.elapsed = max(self.elapsed, float(record.get("at", 0.0)))
            if record.get("t") in ("bucket", "sure"):
                self.state.apply(record)

    def stop(self) -> None:
        """Begin nothing new; what is under way is cut short and kept as far as it came."""
        self.stopped = True

    def enough(self) -> bool:
        return self.stopped or time.monotonic() > self._deadline

    async def run(self) -> Done:
        """Work until nothing is left, or time is up. Files are complete at any moment.

        Raises:
            TargetRefused: the first target cannot start.
        """
        await self._round(self._left(), fast=True)
        if self._not_hastened and not self.enough():
            few, self._not_hastened = len(self._not_hastened), set()
            await self._round(few, fast=False)
        await self._replay_on_targets()
        issues = self.options.issues or self.directory.issues
        conclude(self.directory, self.findings, issues, lambda text: self.note("warning", text))
        self.done.left = self._left()
        self.done.complete = not self.done.left
        self._tell_stats()
        self.journal.close()
        return self.done

    def _left(self) -> int:
        """Suspects and findings that still want something."""
        return len(self.state.waiting()) + len(self._wanting())

    def _wanting(self) -> list[Finding]:
        """Findings that lack a step, without those that a person called no bug or another one's copy."""
        labels = LabelStore(self.directory).read()
        done = {major for major in labels if (label := labels.get(major)) and label.label in _SETTLED}
        return [item for item in self.findings.load_all() if lacking(item) and item.signature.major not in done]

    async def _round(self, wanted: int, fast: bool) -> None:
        """All that is to be done, with the hastened toolchain, or what does not show with it, with that of users.

        What is kept of either was seen with that of users in fresh processes.
        """
        workers = [self._worker(0, slot, fast) for slot in range(min(self.options.workers, wanted))]
        loops = [asyncio.create_task(self._work(worker)) for worker in workers]
        try:
            await asyncio.gather(*loops)
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            for worker in workers:
                await worker.stop()
                worker.discard()

    def _worker(self, number: int, slot: int = 0, fast: bool = False) -> Worker:
        """A fork server without coverage."""
        options = WorkerOptions((), self.options.plant or None, self.options.limits, fast=fast)
        folder = self.directory.worker_tmp(f"triage-{number}" + (f"-{slot}" if slot else ""))
        return Worker(self.options.targets[number], folder, options)

    async def _work(self, worker: Worker) -> None:
        """A finding and a suspect in turn, as long as there are any: when time runs out, there is something of both."""
        await worker.start(lambda line: self.note("worker", line))
        while not self.enough():
            worked = await self._next_finding(worker)
            if not self.enough():
                worked |= await self._next_suspect(worker)
            if not worked:
                return

    @contextlib.contextmanager
    def _at(self, major: str) -> Iterator[None]:
        self._under_way.add(major)
        try:
            yield
        finally:
            self._under_way.discard(major)

    def _free(self, major: str) -> bool:
        return not any(major in group for group in (self._refused, self._under_way, self._not_hastened))

    # -- suspects that had to wait ------------------------------------------------------------------------------------

    async def _next_suspect(self, worker: Worker) -> bool:
        """Triage one that waits, what is probably a finding already after the others; False when none does."""
        familiar = Familiar(self.findings.load_all())
        waiting = sorted(self.state.waiting(), key=lambda item: familiar.knows(item[0]))
        for major, program_id in waiting:
            if self._free(major):
                with self._at(major):
                    await self._triage_suspect(worker, major, program_id)
                return True
        return False

    async def _triage_suspect(self, worker: Worker, major: str, program_id: str) -> None:
        record: dict[str, Any] = {"t": "bucket", "major": major, "count": 0, "at": self.elapsed}
        stored = self.corpus_files.read(program_id)
        try:
            program = Program.parse(stored["text"], program_id) if stored else None
        except ProgramError:
            program = None
        if program is None:
            self._append({**record, "state": "dismissed"})
            return
        self.note("triage", f"suspect {program_id}: {major[:100]}")
        try:
            triaged = await self._triaged(worker, program)
            if triaged is None and worker.options.fast:
                again = await worker.execute(program, "plain", {"plain": True}, coverage=False)
                if judge(again, program.meta).is_suspect:
                    self._not_hastened.add(major)
                    return
        except (WorkerLost, TargetRefused) as error:
            self._give_up(major, str(error))
            return
        self.done.suspects += 1
        record["state"] = triaged.state if triaged is not None else "dismissed"
        if triaged is not None:
            self._take_slips(triaged.slips)
            if triaged.finding is not None:
                record |= {"finding": triaged.finding.signature.major, "new": self._keep(triaged.finding, triaged)}
        self._append(record)

    async def _triaged(self, worker: Worker, program: Program) -> Triaged | None:
        observation, verdict = await execute(worker, program, coverage=False)
        if not verdict.is_suspect:
            return None
        return await triage(
            worker,
            program,
            observation,
            verdict,
            worker.folder / "confirm",
            self.known_issues,
            Origin(seconds=self.elapsed),
        )

    def _keep(self, finding: Finding, triaged: Triaged) -> bool:
        """Store a finding; False when one of its major signature is there already."""
        if self.findings.get(finding.signature.major) is not None:
            self.findings.add_duplicate(finding.signature.major, finding.text)
            return False
        folder = self.findings.save(finding, triaged.logs)
        self.done.new += 1
        self.note("finding", f"{triaged.state}: {finding.kind.value} — {finding.reason[:120]} → {folder.name}")
        return True

    def _take_slips(self, slips: tuple[Slip, ...] | list[Slip]) -> None:
        """Other faults become suspects that wait, like those that a campaign had no time for."""
        for slip in slips:
            major = slip.signature.major
            known = major in self.state.buckets or self.findings.get(major) is not None
            if not known and self.done.slips < _SLIPS:
                self.done.slips += 1
                self.corpus_files.add({"text": slip.program.text, "meta": slip.program.meta, "parents": []})
                self._append({"t": "bucket", "major": major, "program": slip.program.id, "at": self.elapsed})

    # -- findings -----------------------------------------------------------------------------------------------------

    async def _next_finding(self, worker: Worker) -> bool:
        """Take the steps that the gravest finding still wants; False when none wants any."""
        wanting = by_severity(self._wanting())
        free = [item for item in wanting if self._free(item.signature.major)]
        if not free:
            return False
        major = free[0].signature.major
        self.note("triage", f"finding {self._name(free[0])}, {len(wanting) - 1} more wait")
        with self._at(major):
            try:
                await self._deepen(worker, free[0])
            except (WorkerLost, TargetRefused) as error:
                self._give_up(major, str(error))
        return True

    async def _deepen(self, worker: Worker, finding: Finding) -> None:
        """Take every step that the finding wants; each is stored at once."""
        work = Work(worker, finding, self.state.family_of, self.enough)
        if not await reproduce(work):
            if worker.options.fast:
                self._not_hastened.add(finding.signature.major)
            elif not self.stopped:
                self.done.lost += 1
                self._give_up(finding.signature.major, f"{self._name(finding)} does not show on this worker")
            return
        taken = 0
        while (steps := lacking(work.finding)) and not self.enough():  # one step may make another wanted
            step, before = steps[0], work.finding
            await self._take(work, step)
            if work.finding is not before:
                taken += 1
                self._save(work)
            if work.finding.state is State.FLAKY:
                was = "debatable" if finding.debatable else finding.state.value
                major = finding.signature.major
                self._append({"t": "sure", "finding": major, "was": was, "state": "flaky", "at": self.elapsed})
            if step.lacks(work.finding):
                break  # cut short: later steps want its result
        self._take_slips(work.slips)
        self.done.steps += taken
        self.done.findings += bool(taken)
        if lacking(work.finding) and not self.enough():
            self._refused.add(finding.signature.major)

    def _save(self, work: Work) -> None:
        """Store what a step noted; programs that another worker counted for the same finding stay counted."""
        stored = self.findings.get(work.finding.signature.major)
        if stored is not None and stored.duplicates > work.finding.duplicates:
            work.finding = replace(work.finding, duplicates=stored.duplicates)
        self.findings.save(work.finding)

    async def _take(self, work: Work, step: Step) -> None:
        started = time.monotonic()
        await step.run(work)
        self.note("triage", f"  {step.name}: {time.monotonic() - started:.0f} s")

    # -- targets and groups -------------------------------------------------------------------------------------------

    async def _replay_on_targets(self) -> None:
        """Replay what was never replayed on a target of the campaign. One target alone tells nothing new."""
        if len(self.options.targets) > 1:
            for number in range(len(self.options.targets)):
                if not self.enough():
                    await self.recheck(number, only_new=True)

    async def recheck(self, number: int, only_new: bool = False) -> str:
        """Replay every finding on one target, with a fork server of its own; returns its torch version.

        Raises:
            TargetRefused: the target cannot start.
        """
        worker = self._worker(number)
        try:
            await worker.start(lambda line: self.note("worker", line))
            torch = str(worker.ready.get("target", {}).get("torch", ""))
            for finding in by_severity(self.findings.load_all()):
                if self.enough():
                    break
                if only_new and torch in finding.triage.get("versions", {}):
                    continue
                with contextlib.suppress(WorkerLost, TargetRefused):
                    seen = await replay(worker, finding)
                    if seen is not None and not self.stopped:
                        self.done.replays += 1
                        self._store_replay(finding, seen)
                        self.note("recheck", f"torch {torch}: {seen.kind:15} {self._name(finding)}")
        finally:
            await worker.stop()
            worker.discard()
        return torch

    def _store_replay(self, finding: Finding, seen: Replay) -> None:
        moved = with_replays(finding, [seen])
        # What one build says of the state counts only once all given builds were asked: see ``settle``.
        self.findings.save(replace(moved, state=finding.state, note=finding.note, known_issue=finding.known_issue))

    def settle(self, versions: list[str]) -> list[Finding]:
        """After replays on these versions: findings whose state moves, by what the newest of them said."""
        moved = []
        for finding in self.findings.load_all():
            evidence = finding.triage.get("replays", {})
            replays = [Replay(**evidence[torch]) for torch in versions if torch in evidence]
            after = with_replays(finding, replays)
            if after.state is not finding.state:
                self.findings.save(after)
                moved.append(after)
        return moved

    def _tell_stats(self) -> None:
        """``fuzzer_stats`` says how the campaign ended; what triage changed of it is said there as well."""
        stats = read_stats(self.directory.fuzzer_stats)
        if not stats:
            return
        said = Counter(automatic(item) for item in self.findings.load_all())
        named = {"confirmed": "bug", "debatable": "debatable", "known": "known", "flaky": "flaky"}
        counts = {f"findings_{name}": said[word] for name, word in named.items()}
        waiting = sum(bucket.state == "new" for bucket in self.state.buckets.values())
        write_stats(self.directory.fuzzer_stats, {**stats, **counts, "suspects_waiting": waiting})

    # -- helpers ------------------------------------------------------------------------------------------------------

    def _name(self, finding: Finding) -> str:
        folder = self.findings.folder(finding)
        return folder.name if folder else finding.sig8

    def _give_up(self, major: str, why: str) -> None:
        self._refused.add(major)
        self.note("warning", why)

    def _append(self, record: dict[str, Any]) -> None:
        self.journal.append(record)
        self.state.apply(record)

    def note(self, kind: str, text: str) -> None:
        """One line for the screen and the event log."""
        self.events.append(time.time(), kind, text)
        self.report(kind, text)
