"""Does measuring change what is measured? The same programs with all coverage and with none.

    python -m benchmarks.neutral [--programs 500] [--seed 0]

Compared is everything that an observation says but for time and memory: stages and their faults, values and metadata
that differ, operators, aliases, generator state, kernels generated. Where two executions differ, a third and a fourth
(both without coverage) say whether the program agrees with itself at all.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import results
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.engines.wishes import askable
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.observation import Observation
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.schedule import Schedule
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

#: Facts of an observation that are no measurement of time or memory.
_FACTS = ("leaves", "self_leaves", "second_leaves", "random_leaves", "ops", "aliases", "rng", "values")
_VARYING = re.compile(r"0x[0-9a-f]+|/\S+|\d+\.\d+ ?s\b")


def facts(observation: Observation) -> dict[str, Any]:
    """What two executions of one program must agree on."""
    stages = [(stage.name, _fault(stage.fault)) for stage in observation.stages]
    end = (observation.end.how, observation.end.stage, observation.end.signal)
    return {"stages": stages, "end": end} | {name: observation.raw.get(name) for name in _FACTS}


def _fault(fault: Any) -> tuple[str, str] | None:
    return (fault.type, _VARYING.sub("…", fault.message)[:500]) if fault else None


async def compare(count: int, seed: int) -> dict[str, Any]:
    operators = Operators.load_extract()
    keys = operators.choosable()
    schedule = Schedule(FeatureSpace.load(), sorted(keys), keys, [], seed, askable=askable())
    engine = TemplateEngine(operators)
    different: list[dict[str, Any]] = []
    unstable = compared = 0
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        covered = Worker(Target(), Path(folder) / "with", WorkerOptions())
        plain = Worker(Target(), Path(folder) / "without", WorkerOptions(coverage=()))
        try:
            await asyncio.gather(covered.start(), plain.start())
            while compared < count:
                try:
                    written = await engine.write(schedule.next(Corpus()), schedule.choose_operators, plain)
                    both = await asyncio.gather(covered.execute(written.program), plain.execute(written.program))
                    left, right = (facts(seen) for seen in both)
                    compared += 1
                    if left != right:
                        program = written.program
                        if facts(await plain.execute(program)) != facts(await plain.execute(program)):
                            unstable += 1
                        else:
                            different.append(_told(program, left, right))
                except (CannotWrite, WorkerLost):
                    continue
                if sys.stderr.isatty():
                    print(f"\r{compared} of {count}, {len(different)} differ ", end="", file=sys.stderr, flush=True)
        finally:
            await asyncio.gather(covered.stop(), plain.stop())
    return {"programs": compared, "different": different, "unstable": unstable}


def _told(program: Program, left: dict[str, Any], right: dict[str, Any]) -> dict[str, Any]:
    names = [name for name in left if left[name] != right[name]]
    return {
        "program": program.text,
        "facts": names,
        "with": str(left[names[0]])[:300],
        "without": str(right[names[0]])[:300],
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.neutral", description=__doc__)
    parser.add_argument("--programs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    found = asyncio.run(compare(args.programs, args.seed))
    for row in found["different"]:
        print(f"differs in {', '.join(row['facts'])}")
        print(f"  with coverage    {row['with']}\n  without coverage {row['without']}")
        print(row["program"])
    row = {"programs": found["programs"], "different": len(found["different"]), "unstable": found["unstable"]}
    print(results.table([list(row), list(row.values())]))
    command = f"python -m benchmarks.neutral --programs {args.programs} --seed {args.seed}"
    print(f"→ {results.save('neutral', command, row)}")
    return 1 if found["different"] else 0


if __name__ == "__main__":
    sys.exit(main())
