"""The template engine: validity, conformity, variety, cost.

    python -m benchmarks.engine [--count 300] [--seed 0] [--show 3]

Writes programs by probing, executes each eagerly (gradients too), and detects which of the asked features it
really has. Nothing is compiled, so this takes a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import time
from collections import Counter

from benchmarks.results import save, table
from fuzzer.campaign import is_valid
from fuzzer.cli.common import scratch_folder
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.engines.wishes import askable
from fuzzer.features.detect import detect
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.schedule import Schedule
from fuzzer.worker import Target, Worker, WorkerOptions


async def measure(count: int, seed: int) -> tuple[dict[str, float | int], list[list[object]], list[str]]:
    """Figures, rows of the worst features, and the texts of all programs."""
    operators, space, engine_corpus = Operators.load_extract(), FeatureSpace.load(), Corpus()
    keys = operators.choosable()
    schedule = Schedule(space, sorted(keys), keys, [], seed, askable=askable())
    engine = TemplateEngine(operators)
    asked: Counter[str] = Counter()
    had: Counter[str] = Counter()
    used: set[str] = set()
    seconds, texts, valid, unwritten = [], [], 0, 0
    with scratch_folder() as folder:
        worker = Worker(Target(), folder, WorkerOptions(coverage=(), warm=False))
        await worker.start()
        try:
            for _ in range(count):
                plan, started = schedule.next(engine_corpus), time.perf_counter()
                try:
                    written = await engine.write(plan, schedule.choose_operators, worker)
                except CannotWrite:
                    unwritten += 1
                    continue
                seconds.append(time.perf_counter() - started)
                seen = await worker.execute(written.program, options={"only_eager": True}, coverage=False)
                valid += is_valid(seen)
                realised = detect(written.program, seen, operators.family_of_aten, space)
                asked.update(plan.features)
                had.update(feature for feature in plan.features if feature in realised)
                used.update(written.operators)
                texts.append(written.program.text)
        finally:
            await worker.stop()
    shares = {feature: had[feature] / number for feature, number in asked.items()}
    worst: list[list[object]] = [
        [feature, asked[feature], share] for feature, share in sorted(shares.items(), key=lambda item: item[1])[:8]
    ]
    figures: dict[str, float | int] = {
        "programs": len(texts),
        "unwritten": unwritten,
        "valid": round(valid / max(1, len(texts)), 4),
        "conformity": round(statistics.mean(shares.values()), 4),
        "features_asked": len(asked),
        "features_under_half": sum(share < 0.5 for share in shares.values()),
        "operators": len(used),
        "write_ms_median": round(1000 * statistics.median(seconds), 1),
    }
    return figures, worst, texts


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print so many programs drawn at random")
    args = parser.parse_args(argv)
    figures, worst, texts = asyncio.run(measure(args.count, args.seed))
    for text in random.Random(args.seed).sample(texts, min(args.show, len(texts))):
        print(f"{text}\n{'-' * 80}")
    print(table([["figure", "value"], *([name, value] for name, value in figures.items())]))
    print(table([["worst features", "asked", "realised"], *worst]))
    save("engine", f"python -m benchmarks.engine --count {args.count} --seed {args.seed}", dict(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
