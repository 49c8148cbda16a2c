"""The campaign: the loop that plans, writes, runs, judges and learns, until something says stop."""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzer.block_finder import BlockFinder
from fuzzer.coverage_report.target_files import find
from fuzzer.engines.idioms import Knowledge
from fuzzer.engines.mutate import MutationContext, mutate
from fuzzer.engines.template import CannotWrite, TemplateEngine, Written
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.examine import execute
from fuzzer.features.detect import detect
from fuzzer.features.space import FeatureSpace
from fuzzer.fleet import Fleet
from fuzzer.judge import judge
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import is_to_be_refused, named_entries
from fuzzer.knowledge.retrieval import called
from fuzzer.known_issues import KnownIssues
from fuzzer.llm.engine import LLMEngine
from fuzzer.llm.host import CampaignHost
from fuzzer.loop_state import LoopState, event_coverage
from fuzzer.observation import Observation
from fuzzer.policy.corpus import Seed
from fuzzer.policy.known_coverage import Coverage, count
from fuzzer.policy.plan import Outcome, Plan
from fuzzer.policy.reward import reward
from fuzzer.program import Program, ProgramError
from fuzzer.seeds.given import seeds_of
from fuzzer.signature import signature
from fuzzer.statistics import statistics
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import Journal, Snapshot
from fuzzer.store.stats import Events, StatsFiles
from fuzzer.suspects import Suspects
from fuzzer.triage import Triaged
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, TargetRefused, Worker, WorkerLost, WorkerOptions

_SNAPSHOT_SECONDS = 60.0
_SNAPSHOT_SHARE = 0.02  # of wall time at most, however large the corpus: a snapshot only shortens a resume
_STATS_SECONDS = 5.0
#: Share of programs whose kernels are interpreted (see harness.interpreter and docs/decisions/0005).
_INTERPRETED = 0.75
#: One program in so many runs a second time with the plain toolchain (see harness.toolchain).
_AUDIT_EVERY = 50
_DRAIN_SECONDS = 6.0


@dataclass(frozen=True)
class CampaignOptions:
    """What a person chose on the command line; written to ``campaign.toml``."""

    seed: int = 0
    workers: int = 1
    targets: tuple[Target, ...] = (Target(),)
    plant: str = ""
    coverage: tuple[str, ...] = ("native", "python", "events")
    max_seconds: float = 0.0  # 0: no limit
    max_execs: int = 0
    stop_on_plateau: bool = False
    exit_on_finding: bool = False
    no_clock: bool = False
    blocks: bool = False  # basic blocks of reached functions are covered as well
    full: bool = False  # every kernel compiled, as users compile it
    limits: dict[str, Any] = field(default_factory=dict)
    without: tuple[str, ...] = ()  # sources of knowledge that are switched off
    raised: dict[str, float] = field(default_factory=dict)  # arm → factor on its prior


class Campaign:
    """One run of a campaign directory. Owns workers, journal and files; decisions are taken by ``LoopState``."""

    def __init__(
        self,
        directory: CampaignDirectory,
        options: CampaignOptions,
        operators: Operators,
        known_issues: KnownIssues,
        report: Callable[[str, str], None] = lambda kind, text: None,
        llm: LLMEngine | None = None,
    ) -> None:
        self.llm = llm
        self.directory = directory
        self.options = options
        self.knowledge = Knowledge.without(options.without)
        self.operators = operators if self.knowledge.neighbours else operators.without_neighbours()
        self.space = FeatureSpace.load()
        self.state = self._fresh_state()
        self.engine = TemplateEngine(self.operators, self.knowledge)
        self.known_issues = known_issues
        self.report = report
        self.journal = Journal(directory.journal)
        self.snapshot = Snapshot(directory.snapshot)
        self.corpus_files = CorpusFiles(directory.corpus)
        self.findings = FindingStore(directory)
        self.stats_files = StatsFiles(directory)
        self.events = Events(directory.events)
        servers = WorkerOptions(options.coverage, options.plant or None, options.limits, fast=not options.full)
        finder = BlockFinder(find(options.targets[0].python).library) if options.blocks else None
        self.fleet = Fleet(
            directory, options.targets, options.workers, servers, lambda: self.state.known.as_delta(), self.note, finder
        )
        self.stop_reason = ""
        self.base_time = 0.0
        self.started = time.monotonic()
        self.runs_before = 0
        self._stop = asyncio.Event()
        self.suspects = Suspects(self)
        self._last_snapshot = self._snapshot_cost = 0.0

    # -- life -----------------------------------------------------------------------------------------------------

    def _fresh_state(self) -> LoopState:
        chosen = self.options
        return LoopState(self.operators, self.space, chosen.seed, knowledge=self.knowledge, raised=chosen.raised)

    def recover(self) -> int:
        """Snapshot plus later records of the journal. Returns the number of runs recovered."""
        offset = 0
        loaded = self.snapshot.read(self.journal.size)
        if loaded is not None:
            try:
                self.state.restore(loaded[0])
                offset = loaded[1]
            except (KeyError, TypeError, ValueError) as error:
                self.note("warning", f"the snapshot is of another version ({error!r}); replaying the whole journal")
                self.state = self._fresh_state()
        for _after, record in self.journal.replay(offset):
            self.state.apply(record)
        stores = (self.journal, self.snapshot, self.corpus_files, self.findings)
        for warning in [warning for store in stores for warning in store.warnings]:
            self.note("warning", warning)
        self.base_time = self.state.counters.run_time
        self.runs_before = self.state.counters.runs
        return self.state.counters.runs

    async def run(self) -> str:
        """Run until something says stop; returns the reason. Workers are gone and files complete afterwards."""
        self.started = time.monotonic()
        self._last_snapshot = self.started
        keeper = asyncio.create_task(self._keep_house())
        loops: list[asyncio.Task[None]] = []
        try:
            if await self.fleet.start(self._stop):
                if self.llm is not None:
                    self.llm.start(CampaignHost(self))
                loops = [asyncio.create_task(self._work(worker)) for worker in self.fleet.workers]
                await self._wait([keeper, *loops], loops)
        finally:
            for task in (keeper, *loops):
                task.cancel()
            await asyncio.gather(keeper, *loops, return_exceptions=True)
            if self.llm is not None:
                await self.llm.stop()
            await self.fleet.kill()
            self._finish()
        return self.stop_reason

    async def _wait(self, watched: list[asyncio.Task[None]], loops: list[asyncio.Task[None]]) -> None:
        stopping = asyncio.create_task(self._stop.wait())
        done, _pending = await asyncio.wait([stopping, *watched], return_when=asyncio.FIRST_COMPLETED)
        # Drain: programs in flight may end, their results no longer become findings.
        self._stop.set()
        await asyncio.wait([stopping, *loops], timeout=_DRAIN_SECONDS)
        for task in (*done, *loops):
            if task.done() and not task.cancelled() and (error := task.exception()) is not None:
                self.stop_reason = self.stop_reason or f"error: {error}"
                raise error

    def stop(self, reason: str) -> None:
        """Ask for a drained end. The first reason counts."""
        if not self.stop_reason:
            self.stop_reason = reason
            self.note("stop", reason)
        self._stop.set()

    @property
    def stopping(self) -> bool:
        return self._stop.is_set()

    @property
    def elapsed(self) -> float:
        """Wall seconds of the campaign, over all its runs."""
        return self.base_time + time.monotonic() - self.started

    def _finish(self) -> None:
        self._save_snapshot()
        self._write_stats()
        self.journal.close()

    # -- the loop -------------------------------------------------------------------------------------------------

    async def _work(self, worker: Worker) -> None:
        while not self.stopping:
            await self._wait_for_disk()
            if not worker.alive:
                await self.fleet.revive(worker)
            if await self.suspects.triage_waiting(worker):
                continue
            if self.llm is not None:
                await self.llm.prepare()
            plan = self._record_plan()
            try:
                written = await self._write(plan, worker)
                if written is None:
                    continue
                await self.fleet.tell(worker)
                interpret = self._is_interpreted(written.program)
                observation, verdict = await execute(worker, written.program, interpret=interpret)
                observation, verdict, audit = await self._audited(worker, written.program, observation, verdict)
                if self.stopping:
                    return
                triaged = await self.suspects.consider(worker, plan, written, observation, verdict)
            except (WorkerLost, TargetRefused) as error:
                self._record_lost(plan, str(error))
                continue
            if observation.end.how != "lost":
                self.fleet.survived(worker)
            if self.stopping and triaged is None and verdict.is_suspect:
                return
            self._digest(plan, written, observation, verdict, triaged, audit)
            await self.fleet.recycle(worker)

    def _is_interpreted(self, program: Program) -> bool:
        """Most programs need no compiled kernels to be judged; those that ask for options of the C++ backend do."""
        asks = any(str(name).startswith("cpp") for name in program.meta.get("inductor_config", {}))
        return not (self.options.full or asks) and int(program.id[:8], 16) < _INTERPRETED * 2**32

    async def _audited(
        self, worker: Worker, program: Program, observation: Observation, verdict: Verdict
    ) -> tuple[Observation, Verdict, str]:
        """Some programs run with the plain toolchain too: ``""`` (not this one), ``same``, ``other`` or ``missed``.

        A fault that only the plain toolchain shows counts; one that only the fast one shows is dismissed by the gates.
        ``missed`` is no disagreement of compilers: interpreted kernels did not show what compiled ones do, which may
        be rounding that the gates dismiss.
        """
        if self.options.full or self.stopping or int(program.id, 16) % _AUDIT_EVERY:
            return observation, verdict, ""
        again = await worker.execute(program, "plain", {"plain": True}, coverage=False)
        plain = judge(again, program.meta)
        if plain.kind is verdict.kind or Kind.HARNESS_ERROR in (plain.kind, verdict.kind):
            return observation, verdict, "same"
        if observation.raw.get("interpreted", {}).get("kernels") and plain.is_suspect and not verdict.is_suspect:
            return replace(again, coverage=observation.coverage), plain, "missed"
        difference = f"{verdict.kind.value} with the fast toolchain, {plain.kind.value} with the plain one"
        self.note("warning", f"toolchains disagree on {program.id}: {difference}; --full uses the plain one alone")
        self.corpus_files.add({"text": program.text, "meta": program.meta, "parents": []})
        if plain.is_suspect and not verdict.is_suspect:
            return replace(again, coverage=observation.coverage), plain, "other"
        return observation, verdict, "other"

    def _record_lost(self, plan: Plan, why: str) -> None:
        """A fork server died, and with it what the plan would have become."""
        if not self.stopping:
            self.note("warning", f"harness error: {why}")
            outcome = Outcome(plan, Kind.HARNESS_ERROR.value, 0.0, 1.0, tokens=self._told_llm(plan, Kind.HARNESS_ERROR))
            self.append({"t": "unwritten", "outcome": outcome.to_map(), "why": why[:200]})

    def _record_plan(self) -> Plan:
        offer = self.llm.offer() if self.llm is not None else None
        self.journal.append({"t": "plan", "llm": offer} if offer else {"t": "plan"})
        plan = self.state.plan(offer)
        if plan.engine == "llm" and self.llm is not None:
            self.llm.take(plan)
        return plan

    async def _write(self, plan: Plan, worker: Worker) -> Written | None:
        """A program for the plan; None when no engine could make one (recorded, so that its arms learn)."""
        try:
            if plan.engine == "mutate":
                return self._mutate(plan)
            if plan.engine == "llm" and self.llm is not None:
                written = await self.llm.write(plan, worker)
                self.journal.append({"t": "written", "n": plan.number, "text": written.program.text})
                return written
            return await self.engine.write(plan, self.state.schedule.choose_operators, worker)
        except (CannotWrite, ProgramError) as error:
            outcome = Outcome(plan, Kind.INVALID.value, 0.0, 0.1, tokens=self._told_llm(plan, Kind.INVALID))
            self.append({"t": "unwritten", "outcome": outcome.to_map(), "why": str(error)[:200]})
            return None

    def _told_llm(self, plan: Plan, kind: Kind, program: str = "") -> int:
        """Tokens that the plan's program cost; the language model's engine is told what became of it."""
        return self.llm.told(plan, kind.value, program) if plan.engine == "llm" and self.llm is not None else 0

    def _mutate(self, plan: Plan) -> Written:
        seed = self.program(plan.seed)
        donor = None
        if plan.donor:
            with contextlib.suppress(ViewError):
                donor = ProgramView.of(self.program(plan.donor))
        schedule = self.state.schedule
        context = MutationContext(
            random.Random(plan.random), self.operators, donor, plan.features, self.knowledge, schedule
        )
        child = mutate(seed, plan.operator, context)
        if child is None:
            raise CannotWrite(f"{plan.operator} does not apply to {plan.seed}")
        return Written(child, ())

    def program(self, seed_id: str) -> Program:
        stored = self.corpus_files.read(seed_id)
        if stored is None:
            raise CannotWrite(f"seed {seed_id} is not on disk")
        return Program.parse(stored["text"], seed_id)

    async def _wait_for_disk(self) -> None:
        said = False
        while self.directory.disk_state() == "full" and not self.stopping:
            if not said:
                self.note("warning", "the disk is full: paused until there is room")
                said = True
            with contextlib.suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._stop.wait(), 5.0)

    # -- learning ---------------------------------------------------------------------------------------------------

    def _digest(
        self,
        plan: Plan,
        written: Written,
        observation: Observation,
        verdict: Verdict,
        triaged: Triaged | None,
        audit: str,
    ) -> None:
        """Turn one execution into records: run, and perhaps seed."""
        state, program = self.state, written.program
        accepted = is_valid(observation)
        valid = accepted and verdict.kind not in (Kind.INVALID, Kind.HARNESS_ERROR)
        realised = detect(program, observation, state.family_of, state.space)
        events, keys = event_coverage(observation.raw.get("counters", {}), observation.raw.get("kernels", ()))
        fresh, new_pairs = state.news_of({**observation.coverage, **events}, realised if valid else ())
        self.fleet.publish({domain: files for domain, files in fresh.items() if domain != "events"})
        packets = sorted({".".join(name.split(".")[:2]) for name in observation.operators})
        keys += [f"ops:{name}" for name in packets]
        new = count(fresh) | ({"pairs": len(new_pairs)} if new_pairs else {})
        news = triaged is not None and triaged.state == "confirmed"
        judged = triaged.verdict if triaged is not None else verdict
        totals = {**state.known.totals, "pairs": state.pairs.total}
        totals = {domain: totals.get(domain, 0) + new.get(domain, 0) for domain in {**totals, **new}}
        outcome = Outcome(
            plan=plan,
            kind=judged.kind.value,
            reward=reward(judged.kind, news, new, totals, state.counters.runs + 1),
            cost=1.0 if self.options.no_clock else max(0.05, observation.seconds),
            realised=realised,
            operators=written.operators,
            entries=state.realised_entries(named_entries(program), realised),
            new_coverage=new,
            new_finding=news,
            program=program.id,
            bucket=signature(verdict, observation, called=called(program)).major if verdict.is_suspect else "",
            species=tuple(observation.raw.get("kernels", ()))[:16],
            tokens=self._told_llm(plan, judged.kind, program.id),
        )
        keep = valid and judged.kind not in (Kind.FLAKY, Kind.HARNESS_ERROR) and self._is_interesting(fresh, keys, news)
        if keep:
            self._store_seed(program, realised)
        self.append(
            {
                "t": "run",
                "n": plan.number,
                "program": program.id,
                "valid": valid,
                **({"refused": True} if not accepted and is_to_be_refused(program) else {}),
                "at": self.elapsed,
                "seconds": observation.seconds,
                "outcome": outcome.to_map(),
                "coverage": fresh,
                "keys": keys,
                "ops": packets,
                "cxx": observation.raw.get("cxx", {}),
                **({"interpreted": told} if (told := observation.raw.get("interpreted")) else {}),
                "audit": audit,
            }
        )
        if keep:
            seed = Seed(
                id=program.id,
                parents=tuple(name for name in (plan.seed, plan.donor) if name),
                engine=plan.writer,
                features=realised,
                operators=written.operators,
                keys=tuple(keys + new_pairs),
                first=sum(number for domain, number in new.items() if domain in ("native", "python")),
                seconds=1.0 if self.options.no_clock else observation.seconds,
                added=plan.number,
            )
            self.append({"t": "seed", "seed": seed.to_map()})
        if verdict.kind is Kind.HARNESS_ERROR:
            self.note("warning", f"harness error: {verdict.reason[:160]}")
        limit = self.options.max_execs
        if limit and state.counters.runs - self.runs_before >= limit:
            self.stop("max-execs")
        if self.options.stop_on_plateau and state.schedule.plateau.reached:
            self.stop("plateau")

    def _is_interesting(self, fresh: Coverage, keys: list[str], news: bool) -> bool:
        """Worth keeping: it reached code or a kernel class that nothing reached before, or it failed in a new way."""
        frequency = self.state.corpus
        return news or bool(fresh) or any(frequency.is_new(key) for key in keys)

    def _store_seed(self, program: Program, realised: frozenset[str]) -> None:
        seed = {"text": program.text, "meta": program.meta, "features": sorted(realised)}
        self.corpus_files.add({**seed, "parents": list(program.meta.get("parents", []))})

    def give(self, programs: Sequence[Program]) -> int:
        """Add programs from outside to the corpus, before the campaign runs. Returns how many it did not have."""
        before = len(self.state.corpus)
        for program, seed in seeds_of(programs):
            if seed.id not in self.state.corpus:
                self._store_seed(program, seed.features)
                self.append({"t": "seed", "seed": seed.to_map()})
        return len(self.state.corpus) - before

    def append(self, record: dict[str, Any]) -> None:
        self.journal.append(record)
        self.state.apply(record)

    # -- housekeeping -------------------------------------------------------------------------------------------------

    async def _keep_house(self) -> None:
        """Statistics, snapshot, STOP file and time limits, while the workers work."""
        written = 0.0
        while True:
            await asyncio.sleep(0.5)
            now = time.monotonic()
            reason = self.directory.stop_requested()
            if reason:
                self.stop(f"STOP file: {reason}")
            if self.options.max_seconds and now - self.started > self.options.max_seconds:
                self.stop("max-time")
            if now - written > _STATS_SECONDS:
                written = now
                self._write_stats()
            if now - self._last_snapshot > max(_SNAPSHOT_SECONDS, self._snapshot_cost / _SNAPSHOT_SHARE):
                self._save_snapshot()

    def _save_snapshot(self) -> None:
        started = time.monotonic()
        self.snapshot.write(self.state.to_map(), self.journal.size)
        self._last_snapshot = time.monotonic()
        self._snapshot_cost = self._last_snapshot - started

    def _write_stats(self) -> None:
        values = statistics(self)
        self.stats_files.write(values)
        self.stats_files.plot(values)

    def note(self, kind: str, text: str) -> None:
        """One line for the screen and the event log."""
        self.events.append(time.time(), kind, text)
        self.report(kind, text)


def is_valid(observation: Observation) -> bool:
    """Eager execution accepted the program."""
    stage = observation.stage("eager")
    if stage is None or stage.fault is not None or observation.fault("build") or observation.fault("eager_backward"):
        return False
    return not (observation.end.how != "done" and observation.end.stage in ("build", "eager", "eager_backward"))


__all__ = ["Campaign", "CampaignOptions", "is_valid"]
