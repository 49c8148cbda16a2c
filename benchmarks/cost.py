"""What a program costs beside the floor: Eddy against a bare warm loop, and each coverage domain by itself.

    python -m benchmarks.cost [--programs 30] [--seed 0] [--target PYTHON]

Every program runs on every variant before the next one comes, in an order that turns, so that load on the machine
falls on all alike; figures are processor seconds (the C++ compiler's included), which are steadier than wall time. The
first pass meets coverage that nobody knows; the second pass, over the same programs, nothing new: a campaign goes from
the one to the other.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.engines.wishes import askable
from fuzzer.features.space import FeatureSpace
from fuzzer.fleet import CALIBRATION
from fuzzer.judge import judge
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.schedule import Schedule
from fuzzer.program import Program
from fuzzer.staging import target_environment
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

DOMAINS = ("native", "python", "events")

#: Name → coverage domains, and whether the C++ step is hastened.
VARIANTS: dict[str, tuple[tuple[str, ...], bool]] = {
    "plain": ((), False),
    "plain, all coverage": (DOMAINS, False),
    "fast": ((), True),
    "fast, native": (("native",), True),
    "fast, python": (("python",), True),
    "fast, events": (("events",), True),
    "fast, all coverage": (DOMAINS, True),
}


class BareLoop:
    """``benchmarks/bare_loop.py`` in a process of its own."""

    def __init__(self, python: str, folder: Path) -> None:
        self.folder = folder
        environment = target_environment(folder / "scratch", folder / "cache")
        self._process = subprocess.Popen(
            [python, str(Path(__file__).with_name("bare_loop.py"))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        )  # fmt: skip
        self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit("the bare loop died")
        return dict(json.loads(line))

    def run(self, program: Program) -> dict[str, Any]:
        path = self.folder / "program.py"
        path.write_text(program.text)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{path}\n")
        self._process.stdin.flush()
        return self._read()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait()


async def write_programs(worker: Worker, count: int, seed: int) -> list[Program]:
    """Template programs that pass at once and whose compiled part is repeatable in a bare loop."""
    operators = Operators.load_extract()
    keys = operators.choosable()
    schedule = Schedule(FeatureSpace.load(), sorted(keys), keys, [], seed, askable=askable())
    engine = TemplateEngine(operators)
    found: list[Program] = []
    while len(found) < count:
        try:
            written = await engine.write(schedule.next(Corpus()), schedule.choose_operators, worker)
        except CannotWrite:
            continue
        seen = await worker.execute(written.program, coverage=False)
        simple = not written.program.meta.get("random") and "build_inputs2" not in written.program.text
        if simple and judge(seen, written.program.meta).kind is Kind.PASS:
            found.append(written.program)
    return found


async def measure(python: str, count: int, seed: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as name:
        folder = Path(name)
        workers = {  # each with a cache of its own: a kernel that one variant built must not serve another
            variant: Worker(
                Target(python), folder / str(number), WorkerOptions(coverage, fast=fast), folder / f"cache-{number}"
            )
            for number, (variant, (coverage, fast)) in enumerate(VARIANTS.items())
        }
        bare = None
        try:
            for worker in workers.values():
                await worker.start()
                for _ in range(2):
                    await worker.execute(Program.parse(CALIBRATION))
            (folder / "bare" / "scratch").mkdir(parents=True)
            bare = BareLoop(python, folder / "bare")
            programs = await write_programs(workers["plain"], count, seed)
            passes = [await one_pass(bare, workers, programs) for _ in range(2)]
        finally:
            if bare is not None:
                bare.stop()
            await asyncio.gather(*(worker.stop() for worker in workers.values()))
    return {"programs": count, "first": summary(passes[0]), "second": summary(passes[1])}


async def one_pass(bare: BareLoop, workers: dict[str, Worker], programs: list[Program]) -> list[dict[str, Any]]:
    rows = []
    names = list(workers)
    for number, program in enumerate(programs):
        alone = bare.run(program)
        row: dict[str, Any] = {"bare": (alone["cpu"], alone["seconds"], {})}
        for name in names[number % len(names) :] + names[: number % len(names)]:
            seen = await workers[name].execute(program)
            row[name] = (seen.cpu, seen.seconds, seen.raw.get("cxx", {}))
        if not alone["error"]:
            rows.append(row)
        print(f"\r{number + 1} of {len(programs)} ", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return rows


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """By variant: CPU and wall seconds a program, the median ratio to the bare loop, and the C++ step."""
    told = {}
    for name in ("bare", *VARIANTS):
        steps = [row[name][2] for row in rows]
        built = sum(step.get("kernels", 0) - step.get("reused", 0) for step in steps)
        told[name] = {
            "cpu": round(statistics.fmean(row[name][0] for row in rows), 4),
            "wall": round(statistics.fmean(row[name][1] for row in rows), 4),
            "bare_over_it": round(statistics.median(row["bare"][0] / max(row[name][0], 1e-9) for row in rows), 3),
            "kernels": sum(step.get("kernels", 0) for step in steps),
            "reused": sum(step.get("reused", 0) for step in steps),
            "cpu_a_kernel": round(sum(step.get("cpu", 0.0) for step in steps) / built, 4) if built else 0.0,
            **_by_compiler(steps, built),
        }
    return told


def _by_compiler(steps: list[dict[str, Any]], built: int) -> dict[str, Any]:
    """Processor seconds of a kernel that clang built, and of one that g++ did; 0 where it built none."""
    clang = sum(step.get("clang", 0) for step in steps)
    spent = sum(step.get("clang_cpu", 0.0) for step in steps)
    whole = sum(step.get("cpu", 0.0) for step in steps)
    return {
        "clang": clang,
        "cpu_clang": round(spent / clang, 4) if clang else 0.0,
        "cpu_gcc": round((whole - spent) / (built - clang), 4) if built > clang else 0.0,
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cost", description=__doc__)
    parser.add_argument("--programs", type=int, default=30)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", default=sys.executable, metavar="PYTHON")
    args = parser.parse_args(argv)
    os.environ.setdefault("PYTHONDONTWRITEBYTECODE", "1")
    found = asyncio.run(measure(args.target, args.programs, args.seed))
    for name in ("first", "second"):
        print(f"\n{name} pass over {found['programs']} programs")
        rows = found[name]
        print(results.table([["variant", *rows["bare"]], *[[variant, *row.values()] for variant, row in rows.items()]]))
    for toolchain in ("plain", "fast"):
        for name in ("first", "second"):
            ratio = found[name][f"{toolchain}, all coverage"]["cpu"] / found[name][toolchain]["cpu"]
            found[f"coverage_ratio_{toolchain}_{name}"] = round(ratio, 3)
            print(f"coverage, {toolchain} toolchain, {name} pass: x {ratio:.3f} CPU")
    command = f"python -m benchmarks.cost --programs {args.programs} --seed {args.seed}"
    print(f"→ {results.save('cost', command, found)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
