"""``eddy features``: the feature vector of programs, and the bug patterns that it calls to mind."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Sequence
from typing import Any

from fuzzer.cli import common
from fuzzer.features.detect import default_space, detect
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Pattern, default_entries
from fuzzer.knowledge.retrieval import Retriever, program_vector
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.screen import printable
from fuzzer.worker import Worker, WorkerOptions


def add(parsers: Any) -> None:
    parser = parsers.add_parser("features", help="the feature vector of a program")
    parser.add_argument("files", nargs="+", metavar="FILE", help="programs; - reads standard input")
    parser.add_argument("--run", dest="execute", action="store_true", help="run eagerly: features of what happens, too")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    programs = [common.read_program(path) for path in args.files]
    operators = common.load_operators()
    seen: Sequence[Observation | None] = [None] * len(programs)
    if args.execute:
        seen = asyncio.run(_observe(programs, args))
    patterns = [entry for entry in default_entries() if isinstance(entry, Pattern)]
    retriever = Retriever(patterns, default_space().compatible)
    for program, observation in zip(programs, seen):
        _print(program, observation, operators, retriever, args.json)
    return 0


async def _observe(programs: Sequence[Program], args: argparse.Namespace) -> list[Observation]:
    with common.scratch_folder() as folder:
        worker = Worker(common.targets(args)[0], folder / "worker", WorkerOptions(coverage=(), warm=False))
        try:
            await worker.start()
            return [await worker.execute(program, options={"only_eager": True}, coverage=False) for program in programs]
        finally:
            await worker.stop()


def _print(
    program: Program, observation: Observation | None, operators: Operators, retriever: Retriever, as_json: bool
) -> None:
    static = detect(program, None, operators.family_of_aten)
    realised = static if observation is None else detect(program, observation, operators.family_of_aten)
    vector = program_vector(program, observation, operators.family_of_aten, operators.families)
    whole = observation is not None and bool(observation.ops)  # else the text is all there is, and tells little
    similar = [match.pattern.id for match in retriever.retrieve(vector, whole=whole)]
    ended = _ended(observation)
    if as_json:
        shown: dict[str, Any] = {"file": program.source, "static": sorted(static), "patterns": similar}
        if observation is not None:
            shown |= {"realised": sorted(realised), "ended": ended}
        print(json.dumps(shown))
        return
    print(f"{program.source}:{f' {printable(ended)}' if ended else ''}")
    space = default_space()
    for feature in sorted(realised):
        mark = " " if feature in static else "+"  # what only the run shows
        print(f"  {mark} {feature:36} {space.describe(feature)}")
    print(f"  like: {', '.join(similar) or 'no known pattern'}")


def _ended(observation: Observation | None) -> str:
    """How an eager run ended, where it did not end well."""
    if observation is None:
        return ""
    fault = next((stage.fault for stage in observation.stages if stage.fault), None)
    if fault is not None:
        return f"{fault.type}: {fault.message.splitlines()[0] if fault.message else ''}"
    return "" if observation.end.how == "done" else f"{observation.end.how} {observation.end.why}".strip()
