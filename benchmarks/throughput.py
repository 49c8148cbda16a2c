"""Programs per hour, where the time of a program goes, and what coverage costs.

    python -m benchmarks.throughput [--seconds 120] [--programs 30] [--shared 60] [--target PYTHON]

Campaigns with one and with two workers; then one program after the other on two fork servers, one with all coverage
and one without, in turn, so that load on the machine falls on both alike; then the same programs on one server alone
and shared between two others, which no server has seen before: what a second worker adds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import results
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.features.space import FeatureSpace
from fuzzer.fleet import CALIBRATION
from fuzzer.knowledge.operators import Operators
from fuzzer.loop_state import LoopState
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal
from fuzzer.worker import Target, Worker, WorkerOptions

_ROUND = 20  # programs that one and two workers do in turn; the last one runs alone, so not too few
#: Stages that hold others: their own time is what is left.
_NESTED = {"compare": ("float64", "perturbed")}


def campaign(python: str, workers: int, seconds: float) -> dict[str, Any]:
    """A campaign of its own; the pace is that from its first program to its last, the start apart."""
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        path = Path(folder) / "campaign"
        command = [sys.executable, "-m", "fuzzer", "fuzz", str(path), "--target", python, "--workers", str(workers)]
        command += ["--seed", "1", "--max-time", f"{seconds:g}s", "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"the campaign failed: {done.stderr.strip().splitlines()[-1]}")
        status = json.loads(done.stdout)
        pace = results.untriaged_pace(path, workers)
        runs = [row for _at, row in read_journal(CampaignDirectory.open(path).journal) if row["t"] == "run"]
    first, last = (runs[0]["at"], runs[-1]["at"]) if len(runs) > 1 else (0.0, seconds)
    return {
        "workers": workers,
        "programs": len(runs),
        "seconds": round(last - first, 1),
        "start_seconds": round(first, 1),
        "programs_per_hour": round(3600 * (len(runs) - 1) / max(last - first, 1e-9)),
        "untriaged_per_hour": pace,
        "valid_rate": status["valid_rate"],
        "conformity": status["conformity"],
        "operators_executed": status["operators_executed"],
        "orchestrator_rss_mb": round(status["rss"] / 1e6),
    }


async def stages(python: str, count: int) -> dict[str, Any]:
    """Seconds by stage, and with and without coverage, over the same template programs."""
    operators = Operators.load_extract()
    state, engine = LoopState(operators, FeatureSpace.load(), 1), TemplateEngine(operators)
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        everything = Worker(Target(python), Path(folder) / "with", WorkerOptions(fast=True))
        nothing = Worker(Target(python), Path(folder) / "without", WorkerOptions(coverage=(), fast=True))
        try:
            for worker in (everything, nothing):
                await worker.start()
                for _ in range(2):
                    await worker.execute(Program.parse(CALIBRATION))
            pairs: list[tuple[tuple[Observation, float], tuple[Observation, float]]] = []
            writing: list[float] = []
            while len(pairs) < count:
                started = time.perf_counter()
                try:
                    plan = state.schedule.next(state.corpus)
                    written = await engine.write(plan, state.schedule.choose_operators, nothing)
                except CannotWrite:
                    continue
                writing.append(time.perf_counter() - started)
                if len(pairs) % 2:
                    plain = await _timed(nothing, written.program)
                    covered = await _timed(everything, written.program)
                else:
                    covered = await _timed(everything, written.program)
                    plain = await _timed(nothing, written.program)
                if covered[0].end.how == plain[0].end.how == "done":
                    pairs.append((covered, plain))
        finally:
            await asyncio.gather(everything.stop(), nothing.stop())
    return _summary(pairs, writing)


async def scaling(python: str, count: int) -> dict[str, Any]:
    """What two workers do in the time of one, on the same programs, each new to the server that runs it."""
    operators = Operators.load_extract()
    state, engine = LoopState(operators, FeatureSpace.load(), 2), TemplateEngine(operators)
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        options = WorkerOptions(fast=True)
        alone, *both = [Worker(Target(python), Path(folder) / name, options) for name in ("alone", "left", "right")]
        sums = {"alone_wall": 0.0, "both_wall": 0.0, "alone_cpu": 0.0, "both_cpu": 0.0}
        done = 0
        try:
            for worker in (alone, *both):
                await worker.start()
                for _ in range(2):
                    await worker.execute(Program.parse(CALIBRATION))
            while done < count:
                programs = await _some(engine, state, alone, _ROUND)
                for name, workers in (("alone", [alone]), ("both", both))[:: 1 if done % (2 * _ROUND) else -1]:
                    wall, cpu = await _shared(workers, programs)
                    sums[f"{name}_wall"] += wall
                    sums[f"{name}_cpu"] += cpu
                done += len(programs)
        finally:
            await asyncio.gather(*(worker.stop() for worker in (alone, *both)))
    return {
        "programs": done,
        **{name: round(value / done, 3) for name, value in sums.items()},
        "pace_of_two": round(sums["alone_wall"] / sums["both_wall"], 3),
        "cpu_ratio": round(sums["both_cpu"] / sums["alone_cpu"], 3),
    }


async def _some(engine: TemplateEngine, state: LoopState, worker: Worker, count: int) -> list[Program]:
    found: list[Program] = []
    while len(found) < count:
        with contextlib.suppress(CannotWrite):
            plan = state.schedule.next(state.corpus)
            found.append((await engine.write(plan, state.schedule.choose_operators, worker)).program)
    return found


async def _shared(workers: list[Worker], programs: list[Program]) -> tuple[float, float]:
    """(wall, CPU) seconds of the programs, each run by the first worker that is free."""
    queue, cpu = list(programs), 0.0

    async def work(worker: Worker) -> None:
        nonlocal cpu
        while queue:
            seen = await worker.execute(queue.pop())  # not in one expression with the sum, which the other changes
            cpu += seen.cpu

    started = time.perf_counter()
    await asyncio.gather(*(work(worker) for worker in workers))
    return time.perf_counter() - started, cpu


async def _timed(worker: Worker, program: Program) -> tuple[Observation, float]:
    started = time.perf_counter()
    observation = await worker.execute(program)
    return observation, time.perf_counter() - started


def own_seconds(observation: Observation) -> dict[str, float]:
    """Wall seconds by stage, nested stages taken out of those that hold them; ``rest`` is fork, pipes and reaping."""
    seconds: dict[str, float] = {}
    for stage in observation.stages:
        seconds[stage.name] = seconds.get(stage.name, 0.0) + stage.seconds
    for outer, inner in _NESTED.items():
        if outer in seconds:
            seconds[outer] -= sum(seconds.get(name, 0.0) for name in inner)
    seconds["rest"] = observation.seconds - sum(seconds.values())
    return seconds


def _summary(pairs: list[Any], writing: list[float]) -> dict[str, Any]:
    covered = [observation for (observation, _), _ in pairs]
    plain = [observation for _, (observation, _) in pairs]
    by_stage: dict[str, list[float]] = {}
    for observation in covered:
        for name, seconds in own_seconds(observation).items():
            by_stage.setdefault(name, []).append(seconds)
    count = len(pairs)
    ratios = [a.seconds / b.seconds for a, b in zip(covered, plain)]
    return {
        "programs": count,
        "mean_seconds": {name: round(sum(values) / count, 4) for name, values in by_stage.items()},
        "total_seconds": round(sum(observation.seconds for observation in covered) / count, 4),
        "cpu_seconds": round(sum(observation.cpu for observation in covered) / count, 4),
        "writing_seconds": round(statistics.fmean(writing), 4),
        "round_trip_seconds": round(sum(wall - seen.seconds for (seen, wall), _ in pairs) / count, 4),
        "coverage_ratio_of_sums": round(sum(a.seconds for a in covered) / sum(b.seconds for b in plain), 3),
        "coverage_ratio_of_cpu": round(sum(a.cpu for a in covered) / sum(b.cpu for b in plain), 3),
        "coverage_ratio_median": round(statistics.median(ratios), 3),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.throughput", description=__doc__)
    parser.add_argument("--seconds", type=float, default=120.0, help="length of each campaign")
    parser.add_argument("--programs", type=int, default=30, help="programs for the split by stages")
    parser.add_argument("--shared", type=int, default=60, metavar="N", help="programs on one worker and on two")
    parser.add_argument("--target", default=sys.executable, metavar="PYTHON")
    args = parser.parse_args(argv)
    campaigns = [campaign(args.target, workers, args.seconds) for workers in (1, 2)]
    print(results.table([list(campaigns[0]), *[list(row.values()) for row in campaigns]]))
    split = asyncio.run(stages(args.target, args.programs))
    means = split["mean_seconds"]
    rows = sorted(means.items(), key=lambda item: -item[1])
    print()
    print(results.table([["stage", "mean s", "share"], *[[n, s, s / split["total_seconds"]] for n, s in rows]]))
    print()
    print(results.table([["figure", "value"], *[[n, v] for n, v in split.items() if n != "mean_seconds"]]))
    shared = asyncio.run(scaling(args.target, args.shared))
    print()
    print(results.table([["one worker and two", "value"], *[[n, v] for n, v in shared.items()]]))
    command = (
        f"python -m benchmarks.throughput --seconds {args.seconds:g} --programs {args.programs} --shared {args.shared}"
    )
    print(f"→ {results.save('throughput', command, {'campaigns': campaigns, 'stages': split, 'scaling': shared})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
