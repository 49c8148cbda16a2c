"""The model as the engine sees it: cache, log, ledger, health and limits around one client."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

from fuzzer.llm.cache import AnswerCache
from fuzzer.llm.capability import Level, obeyed, probe_question
from fuzzer.llm.client import Fault
from fuzzer.llm.exchange import Exchanges, Replay
from fuzzer.llm.ledger import Ledger, OverBudget
from fuzzer.llm.outage import Outage
from fuzzer.llm.pace import Pace
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.settings import Redactor, Settings

_ATTEMPTS = 4  # of one question, over transient failures
_LONGER = 2.0  # a truncated answer is asked for once more, with so many times the tokens


class Asker(Protocol):
    """What is needed of a ``Client``."""

    async def once(self, question: Question, level: Level) -> Answer: ...

    async def close(self) -> None: ...


class NoAnswer(Exception):
    """The question stays unanswered. ``wait``: seconds after which asking may be worth it; None: never in this run."""

    def __init__(self, why: str, wait: float | None = 0.0) -> None:
        super().__init__(why)
        self.wait = wait


class Model:
    """Answers questions, from a log, the cache or the endpoint."""

    def __init__(
        self,
        settings: Settings,
        folder: Path | None,
        client: Asker | None,
        ledger: Ledger,
        redact: Redactor,
        replay: Replay | None = None,
        outage: Outage | None = None,
        note: Callable[[str, str], None] = lambda kind, text: None,
    ) -> None:
        """``client`` None: nothing but what ``replay`` holds is answered. ``folder`` None: nothing is kept."""
        self.settings, self.client, self.ledger, self.replay = settings, client, ledger, replay
        self.cache = AnswerCache(folder / "cache") if folder else None
        self.exchanges = Exchanges(folder, redact)
        self.redact = redact
        self.outage = outage or Outage()
        self.note = note
        self.dead = ""  # why nothing is asked any more
        self.level: Level | None = None
        self._probing = asyncio.Lock()
        self._trial = asyncio.Lock()
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._next_start = 0.0
        self.pace = Pace(lambda: self.settings.timeout)
        self._alone = asyncio.Lock()

    @property
    def is_slow(self) -> bool:
        """Would a full answer take longer than a request may?"""
        return self.pace.is_slow(self.settings.answer_tokens)

    def replays(self, question: Question) -> bool:
        """Does the log that is replayed hold an answer?"""
        return self.replay is not None and question.key(self.settings.model) in self.replay

    async def close(self) -> None:
        if self.client is not None:
            await self.client.close()

    async def ask(self, question: Question) -> Answer:
        """A complete answer.

        Raises:
            NoAnswer: budget, outage, fatal refusal, or an answer that was cut off twice or withheld.
        """
        answer = await self._known_or_asked(question)
        if answer.finish == "length":
            longer = replace(question, answer_tokens=int(question.answer_tokens * _LONGER))
            answer = await self._known_or_asked(longer)
        if not answer.complete:
            raise NoAnswer(f"the answer ended with {answer.finish!r}")
        return answer

    async def capability(self) -> Level:
        """What the endpoint can do; probed once. Raises ``NoAnswer``."""
        async with self._probing:
            if self.level is None:
                self.level = await self._probe()
                self.note("llm", f"{self.settings.model}: structured answers by {self.level.name.lower()}")
        return self.level

    async def look(self) -> None:
        """Before the first question to a model on this machine: what it can do, and how fast it is."""
        host = urlsplit(self.settings.endpoint).hostname or ""
        if host in ("localhost", "::1") or host.startswith("127."):
            with contextlib.suppress(NoAnswer):
                await self.capability()

    async def _probe(self) -> Level:
        for level in (Level.JSON_SCHEMA, Level.OBJECT_WITH_SCHEMA, Level.OBJECT):
            try:
                answer = await self._answer(probe_question(level), level)
            except Fault:
                continue
            if answer.complete and obeyed(answer.text):
                return level
        return Level.PLAIN

    async def _known_or_asked(self, question: Question) -> Answer:
        for _ in range(len(Level) + 1):
            level = Level.PLAIN if question.schema is None else await self.capability()
            try:
                return await self._answer(question, level)
            except Fault as fault:
                if fault.kind != "schema" or level is Level.PLAIN:
                    raise NoAnswer(str(fault)) from None
                self.level = level.next
        raise NoAnswer("the endpoint refuses every form of the schema")

    async def _answer(self, question: Question, level: Level) -> Answer:
        """From log, cache or endpoint. Raises ``Fault`` (question or schema) and ``NoAnswer``."""
        key = question.key(self.settings.model)
        if self.replay is not None:
            known = self.replay.get(key)
            if known is None:
                raise NoAnswer("the log holds no answer to this question")
        else:
            known = self.cache.get(key) if self.cache else None
        if known is not None:
            self.ledger.count_cached(question.family)
            self.exchanges.answered(self.settings.model, question, known)
            return known
        answer = await self._asked(question, level)
        if self.cache:
            self.cache.put(key, answer)
        return answer

    async def _asked(self, question: Question, level: Level) -> Answer:
        fault: Fault | None = None
        for _ in range(_ATTEMPTS):
            async with self._slots, self._one_at_a_time(), self._gate():
                try:
                    return await self._paid(question, level)
                except Fault as failed:
                    fault = failed
            if fault.kind in ("question", "schema"):
                raise fault
        raise NoAnswer(f"no answer in {_ATTEMPTS} tries: {fault}", wait=self.outage.wait)

    @contextlib.asynccontextmanager
    async def _one_at_a_time(self) -> AsyncIterator[None]:
        """On a slow endpoint a second request would only wait for the first, by the same clock."""
        async with self._alone if self.is_slow else contextlib.nullcontext():
            yield

    @contextlib.asynccontextmanager
    async def _gate(self) -> AsyncIterator[None]:
        """Wait while the endpoint is down, then let one through at a time until it answers; keep the request rate."""
        if self.outage.open:
            async with self._trial:
                await asyncio.sleep(self.outage.wait)
                yield
                return
        now = time.monotonic()
        start = max(now, self._next_start)
        self._next_start = start + 60.0 / self.settings.requests_per_minute
        await asyncio.sleep(start - now)
        yield

    async def _paid(self, question: Question, level: Level) -> Answer:
        """One request with its entries in the ledger and the log."""
        if self.dead or self.client is None:
            raise NoAnswer(self.dead or "no endpoint: answers come from the log alone", None)
        try:
            most = self.pace.affordable(question.answer_tokens)
            reserved = self.ledger.reserve(question.family, question.most_tokens_in, most)
        except OverBudget as over:
            raise NoAnswer(str(over), over.wait) from None
        try:
            answer = await self.client.once(replace(question, answer_tokens=most), level)
        except Fault as fault:
            if fault.kind == "timeout":
                self.pace.timed_out(most)
            if fault.charged:
                self.ledger.settle_worst(reserved)
            else:
                self.ledger.settle(reserved, 0, 0, failed=True)
            self.exchanges.failed(self.settings.model, question, fault.kind, fault.why)
            self._note_fault(fault)
            raise
        except BaseException:  # cancelled with the request under way
            self.ledger.settle_worst(reserved)
            raise
        self.ledger.settle(reserved, answer.tokens_in, answer.tokens_out)
        self.pace.answered(answer.tokens_out, answer.seconds)
        answer = replace(answer, text=self.redact(answer.text))  # a model may echo anything, and answers are kept
        if self.outage.open:
            self.note("llm", "the endpoint answers again")
        self.outage.succeeded()
        self.exchanges.answered(self.settings.model, question, answer)
        return answer

    def _note_fault(self, fault: Fault) -> None:
        if fault.kind == "fatal":
            self.dead = fault.why
            self.note("warning", f"language model given up for this run: {fault.why[:200]}")
            raise NoAnswer(fault.why, None)
        if fault.kind in ("question", "schema"):
            return
        if not self.outage.open:
            self.note("warning", f"language model: {str(fault)[:200]}; the campaign goes on without it")
        self.outage.failed(fault.retry_after)
