"""The judge on fresh programs: what it flags, what the gates dismiss, and what judging costs.

    python -m benchmarks.judge [--count 1000] [--seed 0] [--workers 2] [--out DIR]

Writes programs with the template engine, examines each (gates included), prints every suspect by signature, and keeps
the programs under DIR for reading. Cost: seconds of everything but eager, compile and run, on programs that pass at
once, as a share of eager + compile + run.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path

from benchmarks.results import save, table
from fuzzer.cli.common import scratch_folder
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.engines.wishes import askable
from fuzzer.examine import Examined, examine
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.schedule import Schedule
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

#: Stages that a bare comparison of eager and compiled would need as well.
_BARE = frozenset({"build", "eager", "eager_backward", "compile", "run", "backward", "second_eager", "second"})


async def examine_fresh(count: int, seed: int, workers: int) -> list[Examined]:
    """Examine ``count`` programs of the template engine."""
    operators = Operators.load_extract()
    keys = operators.choosable()
    schedule = Schedule(FeatureSpace.load(), sorted(keys), keys, [], seed, askable=askable())
    engine, corpus = TemplateEngine(operators), Corpus()
    found: list[Examined] = []
    with scratch_folder() as folder:
        servers = [Worker(Target(), folder / f"w{n}", WorkerOptions(coverage=())) for n in range(workers)]
        await asyncio.gather(*(server.start() for server in servers))

        async def work(server: Worker) -> None:
            while len(found) < count:
                try:
                    written = await engine.write(schedule.next(corpus), schedule.choose_operators, server)
                    found.append(await examine(server, written.program))
                except (CannotWrite, WorkerLost):
                    continue
                if len(found) % 50 == 0:
                    print(f"… {len(found)} programs", flush=True)

        try:
            await asyncio.gather(*(work(server) for server in servers))
        finally:
            await asyncio.gather(*(server.stop() for server in servers))
    return found[:count]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judge")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("campaigns/judge"))
    args = parser.parse_args(argv)
    found = asyncio.run(examine_fresh(args.count, args.seed, args.workers))
    kinds = Counter(item.verdict.kind.value + (" (debatable)" if item.verdict.debatable else "") for item in found)
    print(table([["kind", "programs"], *([kind, number] for kind, number in kinds.most_common())]))
    args.out.mkdir(parents=True, exist_ok=True)
    for item in found:
        if item.first.is_suspect:
            path = args.out / f"{item.verdict.kind.value}-{item.program.id}.py"
            told = [item.verdict.reason, item.signature.major, *(f"{name}: {how}" for name, how in item.verdict.gates)]
            notes = "".join(f"# {line}\n" for text in told for line in text.splitlines())
            path.write_text(notes + item.program.text, encoding="utf-8")
    suspects = [item for item in found if item.verdict.is_suspect and not item.verdict.debatable]
    by_signature = Counter(item.signature.major for item in suspects)
    print(table([["suspects", "signature"], *([number, major[:150]] for major, number in by_signature.most_common())]))
    numbers = {"programs": len(found), "suspects": len(suspects), "share_of_gates": share_of_gates(found)}
    print(json.dumps(numbers))
    command = f"python -m benchmarks.judge --count {args.count} --seed {args.seed}"
    save("judge", command, {**numbers, "kinds": dict(kinds)})
    print(f"programs with a first suspicion: {args.out}")
    return 0


def share_of_gates(found: list[Examined]) -> float:
    """Seconds that judging adds, over the seconds that running takes, on programs that pass at once."""
    bare = extra = 0.0
    for item in found:
        if item.first.kind is Kind.PASS:
            for stage in item.observation.stages:
                if stage.name in _BARE:
                    bare += stage.seconds
                else:
                    extra += stage.seconds
    return round(extra / max(bare, 1e-9), 4)


if __name__ == "__main__":
    raise SystemExit(main())
