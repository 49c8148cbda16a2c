"""The template engine: validity, conformity, variety, cost.

    python -m benchmarks.engine [--count 300] [--seed 0] [--show 3]

The figures of ``eddy write``, kept where the other figures are. Nothing is compiled, so this takes a minute.
"""

from __future__ import annotations

import argparse
import asyncio
import random
from pathlib import Path

from benchmarks.results import save, table
from fuzzer.cli.common import scratch_folder
from fuzzer.features.detect import default_space
from fuzzer.knowledge.operators import Operators
from fuzzer.worker import Target
from fuzzer.writing import Writing


def measure(count: int, seed: int) -> tuple[dict[str, float | int], list[list[object]], list[str]]:
    """Figures, rows of the worst features, and the texts of all programs."""
    with scratch_folder() as folder:
        writing = Writing(Operators.load_extract(), seed, out=folder / "out")
        asyncio.run(writing.run(count, Target(), folder / "work", 1, lambda tally, done: None))
        texts = [path.read_text("utf-8") for path in sorted(Path(folder / "out").iterdir())]
    told = writing.tally.summary(list(default_space().features))
    template, features = told["engines"]["template"], told["features"]
    asked = {name: row for name, row in features.items() if row["asked"]}
    worst = sorted(asked, key=lambda name: asked[name]["conformity"])[:8]
    figures: dict[str, float | int] = {
        "programs": template["programs"],
        "unwritten": template["unwritten"],
        "valid": template["valid_or_refused"],
        "conformity": told["conformity"],
        "features_asked": len(asked),
        "features_under_half": sum(row["conformity"] < 0.5 for row in asked.values()),
        "operators": told["operators_of_catalogue"],
        "write_ms_median": template["write_ms_median"],
    }
    return figures, [[name, asked[name]["asked"], asked[name]["conformity"]] for name in worst], texts


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.engine")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--show", type=int, default=0, help="print so many programs drawn at random")
    args = parser.parse_args(argv)
    figures, worst, texts = measure(args.count, args.seed)
    for text in random.Random(args.seed).sample(texts, min(args.show, len(texts))):
        print(f"{text}\n{'-' * 80}")
    print(table([["figure", "value"], *([name, value] for name, value in figures.items())]))
    print(table([["worst features", "asked", "realised"], *worst]))
    save("engine", f"python -m benchmarks.engine --count {args.count} --seed {args.seed}", dict(figures))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
