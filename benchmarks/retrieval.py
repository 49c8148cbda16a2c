"""Does retrieval find the family of a real bug, and how long does it take?

    python -m benchmarks.retrieval [--exam corpus/exam] [--torch PYTHON]

Every case of the exam that failed on some torch is run once, eagerly; its vector (text and run) asks for three
patterns. A case counts as found when one of them is of a family that the exam's README gives the case; cases that the
README gives none are listed and do not count. The base was written with these cases at hand, so a second figure leaves
out, for each case, every pattern drawn from its own issue: what is left must generalise. Then vectors as large as those
asked of generation are timed.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import random
import re
import statistics
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.families import Families
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import load_patterns
from fuzzer.knowledge.retrieval import Retriever, program_vector
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

#: First words of a row of the README's table → family of patterns.
ROWS = {
    "index-returning": "index_reduction", "operator whose": "lost_checks", "dtype for": "dtype_without_kernel",
    "zero-dim": "zero_dim", "empty tensor": "empty", "constant subgraph": "constant_folding",
    "algebraic rewrite": "algebraic_rewrite", "C++ integer": "integer_semantics", "input mutated": "mutation_order",
    "backward lowering": "backward", "fake / meta": "fake_strides", "pattern replaced": "pattern_match",
    "view / slice": "view_bounds", "size-driven": "unrolling", "value read back": "captured_scalar",
    "accumulation type": "accumulation", "resampling": "resampling", "higher-order": "higher_order",
    "unsupported-by-codegen": "complex", "autograd or": "autograd_metadata", "scatter / copy": "overlapping_write",
    "scalar Python": "scalar_argument", "default C++ math": "special_functions", "random op": "random",
}  # fmt: skip
_TIMED = 1000


def own_families(readme: str) -> dict[str, set[str]]:
    """Case → families, by the table of recurring triggers."""
    found: dict[str, set[str]] = {}
    for line in readme.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        family = next((name for start, name in ROWS.items() if cells[0].startswith(start)), "")
        if family and len(cells) == 3:
            for case in re.findall(r"\be\d{3}\b", cells[2]):
                found.setdefault(case, set()).add(family)
    return found


async def vectors(folder: Path, target: Target) -> dict[str, tuple[str, frozenset[str]]]:
    """Case → (title, vector) of every case that failed on some torch."""
    operators, families = Operators.load_extract(), Families.load()
    with (folder / "table.csv").open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["confirmed"] == "yes"]
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        worker = Worker(target, Path(scratch) / "worker", WorkerOptions(coverage=(), warm=False))
        await worker.start()
        try:
            for row in rows:
                path = folder / "cases" / row["file"]
                program = Program.parse(path.read_text(encoding="utf-8"), str(path))
                seen = await worker.execute(program, options={"only_eager": True}, coverage=False)
                found[row["id"]] = (row["title"], program_vector(program, seen, operators.family_of_aten, families))
        finally:
            await worker.stop()
    return found


def transfers(
    retriever: Retriever,
    space: FeatureSpace,
    case: str,
    vector: frozenset[str],
    own: dict[str, set[str]],
    issues: dict[str, int],
) -> bool:
    """Is the family found by patterns of other issues alone?"""
    left = [pattern for pattern in retriever.patterns if issues.get(case) not in pattern.issues]
    top = Retriever(left, space.compatible).retrieve(vector)
    return bool(own.get(case, set()) & {match.pattern.family for match in top})


def timed(retriever: Retriever, asked: list[frozenset[str]]) -> tuple[float, float]:
    """Milliseconds of CPU of one retrieval: the median, and what 99 % stay below."""
    seconds = []
    for vector in asked:
        started = time.process_time()
        retriever.retrieve(vector, whole=len(vector) > 8)
        seconds.append(1000 * (time.process_time() - started))
    return statistics.median(seconds), sorted(seconds)[int(0.99 * len(seconds))]


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exam", type=Path, default=Path("corpus/exam"), metavar="DIR")
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="interpreter with torch")
    args = parser.parse_args(argv)
    space = FeatureSpace.load()
    patterns = [entry for entry in load_patterns().entries if entry.kind == "pattern"]
    retriever = Retriever(patterns, space.compatible)  # type: ignore[arg-type]
    own = own_families((args.exam / "README.md").read_text(encoding="utf-8"))
    with (args.exam / "table.csv").open(encoding="utf-8") as file:
        issues = {row["id"]: int(row["issue"]) for row in csv.DictReader(file) if row["issue"].isdecimal()}
    cases = asyncio.run(vectors(args.exam, Target(args.torch)))

    hits, missed, without = 0, Counter[str](), []
    for case, (title, vector) in cases.items():
        top = [match.pattern for match in retriever.retrieve(vector)]
        families = own.get(case, set())
        found = bool(families & {pattern.family for pattern in top})
        mark = "-" if not families else "yes" if found else "NO"
        shown = ", ".join(f"{pattern.family}/{pattern.id}" for pattern in top) or "nothing"
        print(f"{case} {mark:3} {'+'.join(sorted(families)) or 'no family':28} {title[:44]:44} {shown}")
        if not families:
            without.append(case)
        hits += found
        missed.update(families if families and not found else ())
    asked = [vector for _, vector in cases.values()]
    others = sum(transfers(retriever, space, case, vector, own, issues) for case, (_, vector) in cases.items())
    rng = random.Random(0)
    features = sorted(space.features)
    asked += [frozenset(rng.sample(features, rng.randint(2, 6))) for _ in range(_TIMED)]
    median, most = timed(retriever, asked)
    counted = len(cases) - len(without)
    print(f"\nown family among the top 3: {hits} of {counted} ({100 * hits / counted:.0f} %)", dict(missed))
    print(f"the same without patterns of the case's own issue: {others} ({100 * others / counted:.0f} %)")
    print(f"without a family in the README: {' '.join(without)}")
    print(f"{len(patterns)} patterns; one retrieval: median {median:.2f} ms, 99 % below {most:.2f} ms")
    return 0


if __name__ == "__main__":
    sys.exit(main())
