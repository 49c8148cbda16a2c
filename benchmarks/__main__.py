"""``python -m benchmarks [NAME …]``: run benchmarks, all of them in their short form by default; ``--list`` lists."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable

from benchmarks import cost, decisions, engine, essential, judge, kill_resume, neutral, reduction, retrieval, throughput

#: Name → (what it measures, its main, arguments of the short form).
BENCHMARKS: dict[str, tuple[str, Callable[[list[str] | None], int], list[str]]] = {
    "kill_resume": ("kill -9 and resume: losses, orphans (3 kills on torch)", kill_resume.main, ["--kills", "3"]),
    "engine": ("template engine: validity, conformity, variety, cost", engine.main, []),
    "judge": ("suspects of fresh programs, cost of judging (100 programs)", judge.main, ["--count", "100"]),
    "cost": ("a program against a bare warm loop, by toolchain and coverage domain", cost.main, []),
    "decisions": ("the orchestrator's own cost by size of the corpus", decisions.main, ["--largest", "100000"]),
    "neutral": ("the same programs with and without coverage (100 programs)", neutral.main, ["--programs", "100"]),
    "reduction": (
        "known failures hidden in long programs: reduction, grouping (8 cases, 2 copies)",
        reduction.main,
        ["--count", "8", "--copies", "2"],
    ),
    "retrieval": ("do bug patterns of a real bug's family come first, and how fast", retrieval.main, []),
    "essential": (
        "which features known bugs need (what was measured; without --report more)",
        essential.main,
        ["--report"],
    ),
    "throughput": ("programs per hour, stages, cost of coverage", throughput.main, []),
}


#: Those that need a campaign, another interpreter, a model or much time: ``python -m benchmarks.NAME --help``.
BY_THEMSELVES = {
    "classification": "kinds, families and nearest issues of findings against the exam's table",
    "tiers": "what skipping the C++ step would have lost in a campaign",
    "peers": "Eddy and NNSmith side by side",
    "ir_interpreter": "interpreted kernels against compiled ones on a campaign's corpus",
    "llm_outage": "a campaign whose language model dies and comes back",
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)} (default: all)")
    parser.add_argument("--list", action="store_true", help="say what there is")
    args = parser.parse_args()
    unknown = [name for name in args.names if name not in BENCHMARKS]
    if unknown:
        parser.error(f"no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if args.list:
        for name, (what, _main, _arguments) in BENCHMARKS.items():
            print(f"{name:14} {what}")
        for name, what in BY_THEMSELVES.items():
            print(f"{name:14} {what} (by itself: python -m benchmarks.{name})")
        return 0
    return max(_run(name) for name in args.names or BENCHMARKS)


def _run(name: str) -> int:
    what, run, arguments = BENCHMARKS[name]
    print(f"\n== {name}: {what}", flush=True)
    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
