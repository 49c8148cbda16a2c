"""The workers of a campaign: started together, told what the others covered, replaced when they age or die."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from fuzzer.exits import Exit, UserError
from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.program import Program
from fuzzer.store import baseline
from fuzzer.store.directory import CampaignDirectory
from fuzzer.worker import Target, TargetRefused, Worker, WorkerLost, WorkerOptions

if TYPE_CHECKING:  # reports of coverage know about fleets as well
    from fuzzer.block_finder import BlockFinder

#: Run once on every fork server before anything counts: what importing, warming and any trivial program cover.
CALIBRATION = """import torch

META = {"mode": "backward"}


def build_inputs():
    return torch.ones(5, 7, requires_grad=True), torch.ones(5, 7)


def fn(a, b):
    return (torch.sin(a) + b).sum(dim=1)
"""

_RECYCLE_PROGRAMS = 3000
_RECYCLE_RSS = 850 << 20
_LOST_IN_A_ROW = 5  # servers lost without one program in between: the machine or the target is broken
#: Seconds between tries to restart a server: a machine short of memory needs a moment, a broken target none.
_BACKOFF = (0.1, 1.0, 5.0, 20.0)


@dataclass
class _Told:
    """What one fork server was told: as of which of its starts, up to which piece of news and batch of blocks."""

    restarts: int
    position: int
    batches: int = 0


class Fleet:
    """All workers. ``known`` gives the campaign's coverage, ``note`` takes lines for a person."""

    def __init__(
        self,
        directory: CampaignDirectory,
        targets: tuple[Target, ...],
        count: int,
        options: WorkerOptions,
        known: Callable[[], Coverage],
        note: Callable[[str, str], None],
        blocks: BlockFinder | None = None,
    ) -> None:
        # One cache a target: the compiler's precompiled header takes seconds to build and is the same for all.
        caches = [directory.worker_tmp(f"cache-{number}") for number in range(len(targets))]
        self.workers = [
            Worker(targets[number % len(targets)], directory.worker_tmp(number), options, caches[number % len(targets)])
            for number in range(count)
        ]
        self.directory = directory
        self.known = known
        self.note = note
        self._blocks = blocks
        self._batches: list[dict[str, list[int]]] = []  # blocks armed so far: a fresh server gets them all
        self._news: list[Coverage] = []  # coverage found since ``_first``, in order
        self._first = 0  # number of the first piece of news that is still kept
        self._told: dict[int, _Told] = {}
        self._lost = [0] * count  # servers lost in a row, by worker

    async def start(self, stop: asyncio.Event) -> bool:
        """Start all. False when ``stop`` came first.

        Raises:
            TargetRefused: one of them cannot start.
        """
        if self._blocks is not None:
            self._blocks.take(self.known())  # of a campaign that is resumed
        starting: asyncio.Future[Any] = asyncio.gather(*(self._start(n) for n in range(len(self.workers))))
        stopping: asyncio.Future[Any] = asyncio.ensure_future(stop.wait())
        try:
            await asyncio.wait([starting, stopping], return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                return True
            return False
        finally:
            stopping.cancel()
            starting.cancel()
            await asyncio.gather(starting, stopping, return_exceptions=True)

    async def _start(self, number: int) -> None:
        worker = self.workers[number]
        ready = await worker.start(lambda line: self.note("worker", f"worker {number}: {line}"))
        if number == 0 and not worker.target.fake:
            self.note("worker", f"C++ step: {ready.get('toolchain', 'plain')}")
            if not ready.get("target", {}).get("isa"):
                self.note("warning", "the compiler finds no vector instructions: all generated code is scalar")
        await self._calibrate(worker)

    async def _calibrate(self, worker: Worker) -> None:
        """Run the calibration program twice; what it covers is known to the server and counted nowhere.

        What the first worker covers is kept for reports.
        """
        covered = KnownCoverage()
        for _ in range(2):
            covered.absorb((await worker.execute(Program.parse(CALIBRATION, "<calibration>"))).coverage)
        if worker is self.workers[0]:
            torch = str(worker.ready.get("target", {}).get("torch", ""))
            baseline.keep(self.directory, torch, covered.as_delta())
        worker.programs = 0
        await self._tell_all(worker)

    # -- news -------------------------------------------------------------------------------------------------------

    def publish(self, fresh: Coverage) -> None:
        """Coverage that one worker found: the others disarm it before their next program."""
        if fresh:
            self._news.append(fresh)
            if self._blocks is not None:
                self._blocks.take(fresh)

    async def tell(self, worker: Worker) -> None:
        """Disarm in this server what the others found since. Raises ``WorkerLost``."""
        told = self._told.get(id(worker))
        if told is None or told.restarts != worker.restarts:
            await self._calibrate(worker)  # a fresh server, which started by itself under some request
            return
        for fresh in self._news[told.position - self._first :]:
            await worker.mark_known(fresh)
        told.position = self._first + len(self._news)
        self._forget()
        await self._arm_blocks(worker, told)

    async def _tell_all(self, worker: Worker) -> None:
        position = self._first + len(self._news)  # before the await: what comes meanwhile is told again, harmlessly
        await worker.mark_known(self.known())
        self._told[id(worker)] = told = _Told(worker.restarts, position)
        self._forget()
        await self._arm_blocks(worker, told)

    async def _arm_blocks(self, worker: Worker, told: _Told) -> None:
        """Find the blocks of what was reached, when there is enough of it, and arm what this server lacks."""
        if self._blocks is None:
            return
        if self._blocks.due:
            self._batches.append(await asyncio.to_thread(self._blocks.batch))
        while told.batches < len(self._batches):
            batch = self._batches[told.batches]
            told.batches += 1
            if batch:
                await worker.arm(batch)

    def _forget(self) -> None:
        """Drop the news that every worker has heard, so that a long campaign holds none of it."""
        if len(self._told) == len(self.workers):
            heard = min(told.position for told in self._told.values())
            del self._news[: max(0, heard - self._first)]
            self._first = max(self._first, heard)

    # -- age and death ----------------------------------------------------------------------------------------------

    async def recycle(self, worker: Worker) -> None:
        """Replace a server that has run long or grown: what leaks into it is gone before it matters."""
        if worker.programs >= _RECYCLE_PROGRAMS or worker.server_rss > _RECYCLE_RSS:
            self.note("worker", f"recycling a fork server of {worker.server_rss >> 20} MB, {worker.programs} programs")
            await worker.stop()
            try:
                await worker.revive()
                await self._calibrate(worker)
            except (TargetRefused, WorkerLost) as error:  # the next turn of the loop tries again, with patience
                self.note("warning", f"a recycled fork server did not start: {error}")

    def survived(self, worker: Worker) -> None:
        """A program went through."""
        self._lost[self.workers.index(worker)] = 0

    async def revive(self, worker: Worker) -> None:
        """Restart a lost server, with patience.

        Raises:
            UserError: exit code 4, lost too often in a row, or it will not start again.
        """
        number = self.workers.index(worker)
        self._lost[number] += 1
        if self._lost[number] >= _LOST_IN_A_ROW:
            raise UserError(
                f"the fork server of {worker.target.python} died {self._lost[number]} times in a row; "
                f"its last words: {worker.last_words or 'none'}",
                Exit.TARGET,
            )
        for pause in (*_BACKOFF, None):
            try:
                if not worker.alive:
                    await worker.revive()
                    await self._calibrate(worker)
                return
            except (TargetRefused, WorkerLost) as error:
                if pause is None:
                    raise UserError(str(error), Exit.TARGET) from None
                self.note("warning", f"worker {number} does not restart: {error}")
                await asyncio.sleep(pause)

    async def kill(self) -> None:
        """End all servers now."""
        await asyncio.gather(*(worker.kill() for worker in self.workers), return_exceptions=True)
