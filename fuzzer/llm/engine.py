"""The engine of the language model: answers are fetched in the background, workers take what lies ready.

No worker ever waits for a model. The one exception is asked for: in a campaign without a clock (same seed, same
sequence) an answer must not depend on how long the last one took, so there orders are answered in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from pathlib import Path
from typing import Any

from fuzzer.engines.template import CannotWrite, Written
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.retrieval import called
from fuzzer.llm import advice
from fuzzer.llm.author import Author
from fuzzer.llm.free import Unfit
from fuzzer.llm.host import Host
from fuzzer.llm.job import Job, Tries
from fuzzer.llm.model import Model, NoAnswer
from fuzzer.llm.prompts import render
from fuzzer.llm.question import Question
from fuzzer.llm.schema import NoJson
from fuzzer.llm.steps import StepWriter
from fuzzer.observation import Observation
from fuzzer.policy.plan import Plan
from fuzzer.program import Program
from fuzzer.seeds.check import refusal
from fuzzer.worker import Worker

_READY = 4  # answers that may wait for a worker: more would be written for a state long past
_LONGEST_PAUSE = 60.0  # seconds after orders without an answer of use
_ADVICE_RUNS = 1000  # programs between two pieces of advice where there is no clock
_POLL = 5.0  # seconds between two looks whether advice is due


class LLMEngine:
    """Owns the queue of answers. One campaign each."""

    def __init__(
        self,
        model: Model,
        author: Author,
        operators: Operators,
        folder: Path,
        *,
        always: bool = False,
        in_turn: bool = False,
        advice_minutes: float = 30.0,
    ) -> None:
        """
        Args:
            always: take a ready answer whatever the arms say (``--engine llm``).
            in_turn: no background; ``prepare`` waits for an answer (campaigns without a clock).
            advice_minutes: between two pieces of advice; 0 for none.
        """
        self.model, self.author, self.operators = model, author, operators
        self.always, self.in_turn, self.advice_minutes = always, in_turn, advice_minutes
        self.writer = StepWriter(operators)
        self.tries = Tries(folder)
        self.ready: deque[Job] = deque()
        self.programs = 0  # handed to workers' harness
        self._mend: deque[Job] = deque()  # to be asked (again): refused by a worker, or unanswered in an outage
        self._running: dict[int, Job] = {}  # plan number → job
        self._busy = 0
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._host: Host | None = None
        self._ended = ""
        self._misses = 0  # orders in a row without an answer, or without one of use
        self._advised_at = time.monotonic()
        self._advised_runs = 0
        self._was_plateau = False
        self._by_name: dict[str, str] = {}
        for operator in operators:
            self._by_name.setdefault(operator.name, operator.key)
            for form in operator.forms:
                self._by_name.setdefault(form.text.removeprefix("torch.").removeprefix("Tensor."), operator.key)

    # -- life -----------------------------------------------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Begin to ask. Needs a running event loop."""
        self._host = host
        self.model.note = host.note
        self._advised_runs = host.state.counters.runs
        if self.in_turn:
            return
        self._tasks = [asyncio.create_task(self._produce()) for _ in range(self.model.settings.concurrency)]
        if self.advice_minutes:
            self._tasks.append(asyncio.create_task(self._keep_advised()))
        for task in self._tasks:
            task.add_done_callback(self._lost)

    def _lost(self, task: asyncio.Task[None]) -> None:
        """A task of ours failed (a full disk, a damaged template): told, and the campaign goes on without it."""
        if not task.cancelled() and (error := task.exception()) is not None:
            self._need_host().note("warning", f"language model: {type(error).__name__}: {str(error)[:200]}")

    async def stop(self) -> None:
        """End all requests; what was in flight counts at its worst case."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.model.close()

    # -- the campaign's side --------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Returns at once, but in turn: then with an answer ready, or none to be had."""
        if not self.in_turn or self._ended or self.ready:
            return
        await self._advise_if(self._runs() - self._advised_runs >= _ADVICE_RUNS)
        job = self._next_job()
        if self.model.outage.wait:
            return  # the order is lost, as it is when this is replayed: the log has no answer to it
        try:
            await self._answer(job)
        except NoAnswer as none:
            self._give_up(none)

    def offer(self) -> dict[str, Any] | None:
        """What a plan may take up, as it is recorded with the plan."""
        return {"order": self.ready[0].order.to_map(), "always": self.always} if self.ready else None

    def take(self, plan: Plan) -> None:
        """The plan took the offer up."""
        self._running[plan.number] = self.ready.popleft()
        self._room.set()

    async def write(self, plan: Plan, worker: Worker) -> Written:
        """The answer as a program that eager execution accepts.

        Raises:
            CannotWrite: it does not; a free program goes back to the model with the error.
            WorkerLost: the worker's server died.
        """
        job = self._running[plan.number]
        if job.steps is not None:
            return await self._built(job, worker)
        assert job.program is not None
        options = {"only_eager": True, "observe": False}
        observation = await worker.execute(job.program, "eager", options, coverage=False)
        why = _refused(observation)
        if why:
            self.tries.record(job, "eager", "invalid", why, program=job.program.id)
            self._return(job, f"Run eagerly, it fails: {why}")
            raise CannotWrite(why)
        self.programs += 1
        return Written(job.program, self._used(job.program))

    async def _built(self, job: Job, worker: Worker) -> Written:
        assert job.steps is not None
        try:
            built = await self.writer.write(job.steps, job.order.features, job.order.random, worker)
        except CannotWrite as why:
            self.tries.record(job, "probe", "invalid", str(why))
            raise
        numbers = {"steps": built.steps, "kept": built.kept, "as_written": built.as_written}
        self.tries.record(job, "probe", "died" if built.died else "built", built.died, **numbers)
        self.programs += 1
        return built

    def told(self, plan: Plan, kind: str, program: str) -> int:
        """What became of the plan: the verdict is stored with the try. Returns the tokens to credit to its outcome."""
        job = self._running.pop(plan.number, None)
        if job is None:
            return 0
        if program:
            self.tries.record(job, "run", kind, program=program)
        return job.take_tokens()

    def statistics(self) -> dict[str, int | float]:
        total = self.model.ledger.total
        return {
            "llm_requests": total.requests,
            "llm_failures": total.failures,
            "llm_tokens": total.tokens,
            "llm_money": round(total.money, 6),
            "llm_programs": self.programs,
        }

    def _used(self, program: Program) -> tuple[str, ...]:
        keys = (self._by_name.get(name) for name in called(program))
        return tuple(sorted({key for key in keys if key is not None}))

    def _return(self, job: Job, error: str) -> None:
        if not job.exhausted:
            job.error, job.program, job.steps = error, None, None
            self._mend.append(job)
            self._room.set()

    # -- the model's side -----------------------------------------------------------------------------------------

    async def _produce(self) -> None:
        await self.model.look()
        while not self._ended:
            while len(self.ready) + self._busy >= _READY and not self._mend:
                self._room.clear()
                await self._room.wait()
            job = self._next_job()
            self._busy += 1
            wait = 0.0
            try:
                fit = await self._answer(job)
            except NoAnswer as none:
                if none.wait:
                    self._mend.append(job)  # the endpoint's fault, not the order's
                self._give_up(none)
                fit, wait = False, none.wait or 0.0
            finally:
                self._busy -= 1
            self._misses = 0 if fit else self._misses + 1
            if self._misses:  # a model that writes nothing of use is asked ever less often
                await asyncio.sleep(max(wait, min(_LONGEST_PAUSE, 0.25 * 2.0 ** min(self._misses, 20))))

    def _give_up(self, none: NoAnswer) -> None:
        if none.wait is None and not self._ended:
            self._ended = str(none)
            self._need_host().note("llm", f"no more requests in this run: {self._ended[:200]}")
            self._room.set()

    def _next_job(self) -> Job:
        if self._mend:
            return self._mend.popleft()
        host = self._need_host()
        return Job(host.order(self.author.arms(host)))

    async def _answer(self, job: Job) -> bool:
        """Ask until the answer may go to a worker (True), or the tries are used up. Raises ``NoAnswer``."""
        host = self._need_host()
        while not job.exhausted:
            answer = await self.model.ask(self._question(job, host))
            job.tries += 1
            job.tokens += answer.tokens
            job.unpaid += answer.tokens
            job.seconds += answer.seconds
            try:
                self.author.accept(job, answer, host)
            except Unfit as unfit:
                self.tries.record(job, "static", "unfit", str(unfit))
                job.error = str(unfit)
                continue
            self.tries.record(job, "static", "fit")
            self.ready.append(job)
            return True
        return False

    def _question(self, job: Job, host: Host) -> Question:
        """Short for a slow endpoint; from a log the one that was asked then. In turn the clock decides nothing."""
        brief = self.model.is_slow and not self.in_turn
        question = self.author.question(job, host, brief)
        if self.model.replay is not None and not self.model.replays(question):
            question = self.author.question(job, host, True)
            if not self.model.replays(question):
                question = self.author.question(job, host)
        return question

    def _need_host(self) -> Host:
        assert self._host is not None, "the engine was not started"
        return self._host

    # -- advice ---------------------------------------------------------------------------------------------------

    def _runs(self) -> int:
        return self._need_host().state.counters.runs

    async def _keep_advised(self) -> None:
        while not self._ended:
            await asyncio.sleep(_POLL)
            plateau = self._need_host().state.schedule.plateau.reached
            fresh = plateau and not self._was_plateau
            self._was_plateau = plateau
            due = time.monotonic() - self._advised_at > 60.0 * self.advice_minutes
            await self._advise_if((fresh or due) and self._runs() > self._advised_runs)

    async def _advise_if(self, due: bool) -> None:
        if not due or not self.advice_minutes:
            return
        self._advised_at, self._advised_runs = time.monotonic(), self._runs()
        with contextlib.suppress(NoAnswer):  # the ledger and the log have it; the next advice is tried in its time
            await self.advise()

    async def advise(self) -> advice.Advice | None:
        """Ask for advice now and apply it; None when the answer is of no use. Raises ``NoAnswer``."""
        host = self._need_host()
        names = list(dict.fromkeys(arm for arms in advice.shown_arms(host.state).values() for arm in arms))
        form = advice.schema(names)
        user = render(
            "advice", summary=advice.summary(host.state), most=advice.MOST, language=self.model.settings.language
        )
        system = "You advise the scheduler of a fuzzer. You answer in the asked form only."
        answer = await self.model.ask(
            Question("advice", system, user, form, self.model.settings.answer_tokens, 0.2, host.state.counters.runs)
        )
        try:
            found = advice.read(answer.text, form)
        except NoJson as none:
            host.note("llm", f"advice of no use: {none}")
            return None
        host.advise(found.factors, found.reasons)
        return found


def _refused(observation: Observation) -> str:
    """Why eager execution does not accept the program; "" when it does, or when it dies: then the run must judge."""
    if observation.end.how in ("signal", "lost"):
        return ""
    why, detail = refusal(observation)
    return f"{why}. {detail}".strip() if why else ""
