"""What the orchestrator itself costs a program, and how that grows with the corpus.

    python -m benchmarks.decisions [--largest 1000000]

Nothing is executed: corpora of synthetic seeds, with keys as frequent as those of campaigns are (a few everywhere, most
of them rare), and for each size some hundred programs through everything that the loop does between two programs: plan,
mutate a program, features from text, news of coverage, journal record, learning.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import results
from fuzzer.engines.mutate import MutationContext, mutate
from fuzzer.features.detect import detect
from fuzzer.features.space import FeatureSpace
from fuzzer.fleet import CALIBRATION
from fuzzer.knowledge.operators import Operators
from fuzzer.loop_state import LoopState
from fuzzer.observation import Observation
from fuzzer.policy.corpus import Seed
from fuzzer.policy.plan import Outcome
from fuzzer.program import Program
from fuzzer.store.journal import Journal

_PROGRAMS = 300
_KEYS = 20  # of one run
_KNOWN = 60_000  # ids of coverage known; a campaign has as many after an hour


def filled(state: LoopState, size: int, rng: random.Random) -> None:
    """Seeds until the corpus holds ``size``."""
    features = sorted(state.space.features)
    for number in range(len(state.corpus), size):
        keys = [_key(rng) for _ in range(_KEYS)]
        state.corpus.observe(keys)
        realised = frozenset(rng.sample(features, 8))
        seed = Seed(f"{number:016x}", features=realised, keys=tuple(keys), first=rng.choice((0, 0, 3)), added=number)
        state.corpus.add(seed)


def _key(rng: random.Random) -> str:
    """A key of a heavy-tailed law: key k is met in proportion to 1/k."""
    domain = rng.choice(("kernels", "events", "ops", "pairs"))
    return f"{domain}:{int(200_000 ** rng.random())}"


def one_program(state: LoopState, journal: Journal, program: Program, seen: Observation, rng: random.Random) -> float:
    """CPU seconds of the orchestrator for one program."""
    started = time.process_time()
    journal.append({"t": "plan"})
    plan = state.plan()
    child = mutate(program, "insert_view", MutationContext(rng, state.operators)) or program
    realised = detect(child, seen, state.family_of, state.space)
    ids = rng.sample(range(10 * _KNOWN), 5)
    fresh, pairs = state.news_of({"python": {"torch/_inductor/ir.py": ids}}, realised)
    outcome = Outcome(plan, "pass", 0.1, 1.0, realised, ("add",), {"python": 5}, program=child.id)
    keys = [_key(rng) for _ in range(_KEYS)]
    record: dict[str, Any] = {"t": "run", "n": plan.number, "program": child.id, "valid": True, "at": 0.0}
    record |= {"seconds": 1.0, "outcome": outcome.to_map(), "coverage": fresh, "keys": keys, "ops": ["aten.add"]}
    journal.append(record)
    state.apply(record)
    seed = Seed(child.id, features=realised, keys=tuple(keys + pairs), first=5, added=plan.number)
    journal.append({"t": "seed", "seed": seed.to_map()})
    state.corpus.add(seed)
    return time.process_time() - started


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.decisions", description=__doc__)
    parser.add_argument("--largest", type=int, default=1_000_000)
    args = parser.parse_args(argv)
    rng = random.Random(0)
    state = LoopState(Operators.load_extract(), FeatureSpace.load(), 0)
    state.known.absorb({"python": {"torch/_inductor/ir.py": range(_KNOWN)}})
    program = Program.parse(CALIBRATION)
    seen = Observation.from_map({"ops": [{"op": "aten.sin.default", "tensors": [], "outputs": []}] * 8})
    rows = []
    with tempfile.TemporaryDirectory(prefix="eddy-bench-") as folder:
        journal = Journal(Path(folder) / "journal.msgpack")
        size = 1000
        while size <= args.largest:
            filled(state, size, rng)
            seconds = [one_program(state, journal, program, seen, rng) for _ in range(_PROGRAMS)]
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
            ranked = sorted(seconds)
            rows.append(
                {
                    "seeds": size,
                    "median_cpu_ms": round(1000 * statistics.median(seconds), 3),
                    "p99_cpu_ms": round(1000 * ranked[int(0.99 * len(ranked))], 3),
                    "rss_mb": round(peak),
                }
            )
            size *= 10
        journal.close()
    print(results.table([list(rows[0]), *[list(row.values()) for row in rows]]))
    command = f"python -m benchmarks.decisions --largest {args.largest}"
    print(f"→ {results.save('decisions', command, {'sizes': rows})}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
