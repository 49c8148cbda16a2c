"""What confirming, reducing and locating a suspect costs, part by part.

    python -m benchmarks.triage_cost DIR [--count 20] [--seed 0]

Takes findings of a campaign as they were met (the whole programs) and triages each as a campaign would, twice: "now",
with one fresh process, and interpreted kernels where the fault shows so; "before", with three fresh processes, and
compiled kernels only. Told: seconds a suspect, and the share of each part. Half of the programs go
the other way round, for kernels are kept.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import random
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from benchmarks.results import save, table
from fuzzer import triage
from fuzzer.cli.common import scratch_folder
from fuzzer.examine import CONFIRMATIONS, execute
from fuzzer.known_issues import KnownIssues
from fuzzer.program import Program, ProgramError
from fuzzer.reduce import SameFault
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.triage import Origin
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

PARTS = ("settle", "pass_gates", "reduced", "confirm", "located")


@dataclass
class Spent:
    """Seconds of each part, and of all, a suspect at a time."""

    parts: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    all: list[float] = field(default_factory=list)

    @contextlib.contextmanager
    def timed(self) -> Iterator[None]:
        """Within, every part of ``fuzzer.triage`` is timed; what gates take within a reduction counts as gates."""
        running: list[float] = []  # seconds of inner parts, for each part under way

        def wrapped(name: str) -> Any:
            part = getattr(triage, name)

            async def timed(*arguments: Any, **options: Any) -> Any:
                started = time.monotonic()
                running.append(0.0)
                try:
                    return await part(*arguments, **options)
                finally:
                    spent = time.monotonic() - started
                    self.parts[name] += spent - running.pop()
                    if running:
                        running[-1] += spent

            return timed

        with contextlib.ExitStack() as stack:
            for name in PARTS:
                stack.enter_context(mock.patch.object(triage, name, wrapped(name)))
            yield


async def _never(self: SameFault, program: Program) -> None:
    """In place of ``SameFault.try_interpreted``."""


async def measure(path: str, count: int, seed: int) -> dict[str, Spent]:
    findings = [item for item in FindingStore(CampaignDirectory.open(path)).load_all() if not item.debatable]
    random.Random(seed).shuffle(findings)
    spent = {"now": Spent(), "before": Spent()}
    with scratch_folder() as folder:
        worker = Worker(Target(), folder / "worker", WorkerOptions(coverage=(), fast=True))
        await worker.start()
        try:
            for number, finding in enumerate(findings):
                if len(spent["now"].all) >= count:
                    break
                for way in ("now", "before") if number % 2 else ("before", "now"):
                    with contextlib.suppress(ProgramError, WorkerLost):
                        program = Program.parse(finding.text, finding.sig8)
                        await _triage(worker, program, way == "before", spent[way], folder)
                told = (f"{way} {one.all[-1]:.0f} s" for way, one in spent.items() if one.all)
                print(f"{finding.sig8}: {', '.join(told)}", flush=True)
        finally:
            await worker.stop()
    return spent


async def _triage(worker: Worker, program: Program, before: bool, spent: Spent, folder: Path) -> None:
    observation, verdict = await execute(worker, program, coverage=False)
    if not verdict.is_suspect:
        return
    runs = CONFIRMATIONS if before else 1
    with spent.timed(), contextlib.ExitStack() as stack:
        if before:
            stack.enter_context(mock.patch.object(SameFault, "try_interpreted", _never))
        started = time.monotonic()
        known, origin = KnownIssues([]), Origin()
        await triage.triage(worker, program, observation, verdict, folder / "confirm", known, origin, runs)
        spent.all.append(time.monotonic() - started)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.triage_cost")
    parser.add_argument("dir", metavar="DIR", help="a campaign's directory")
    parser.add_argument("--count", type=int, default=20, help="findings")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    spent = asyncio.run(measure(args.dir, args.count, args.seed))
    if not all(one.all for one in spent.values()):
        print("nothing to triage: no finding of this campaign shows here")
        return 1
    numbers = {
        way: {
            "suspects": len(one.all),
            "mean_seconds": round(statistics.mean(one.all), 1),
            "median_seconds": round(statistics.median(one.all), 1),
            "shares": {name: round(one.parts[name] / sum(one.all), 3) for name in PARTS},
        }
        for way, one in spent.items()
    }
    print(table([["", "mean s", "median s", *PARTS], *(_row(way, told) for way, told in numbers.items())]))
    command = f"python -m benchmarks.triage_cost DIR --count {args.count} --seed {args.seed}"
    save("triage_cost", command, numbers)
    return 0


def _row(way: str, told: dict[str, Any]) -> list[Any]:
    return [way, told["mean_seconds"], told["median_seconds"], *(told["shares"][name] for name in PARTS)]


if __name__ == "__main__":
    raise SystemExit(main())
