"""``eddy exec``: judge programs."""

from __future__ import annotations

import argparse
import asyncio
import json
from typing import Any

from fuzzer.cli import common
from fuzzer.examine import Examined, confirm, examine
from fuzzer.exits import Exit
from fuzzer.program import Program
from fuzzer.screen import printable
from fuzzer.worker import Worker, WorkerOptions


def add(parsers: Any) -> None:
    parser = parsers.add_parser("exec", help="judge programs", description="Run programs eagerly and compiled; judge.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="programs; - reads standard input")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every gate and the log")
    parser.add_argument("--confirm", type=int, default=0, metavar="N", help="repeat suspects in N fresh processes")
    parser.add_argument("--plant", choices=("relu", "log1p"), help="plant a bug in the target's children (self-test)")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    common.require_compiler()
    programs = [common.read_program(path) for path in args.files]
    failed = asyncio.run(_run(programs, args))
    return Exit.FINDING if failed else Exit.DONE


async def _run(programs: list[Program], args: argparse.Namespace) -> bool:
    failed = False
    with common.scratch_folder() as folder:
        for number, target in enumerate(common.targets(args)):
            options = WorkerOptions(coverage=(), plant=args.plant)
            worker = Worker(target, folder / f"target-{number}", options)
            try:
                await worker.start()
                for program in programs:
                    seen = await examine(worker, program)
                    confirmed = ""
                    if args.confirm and seen.verdict.is_suspect:
                        fresh = await confirm(
                            target, folder, worker.cache, program, seen.verdict, args.confirm, args.plant
                        )
                        confirmed = f"{fresh.k} of {fresh.n}"
                    _print(seen, confirmed, str(worker.ready["target"]["torch"]), args)
                    failed |= seen.verdict.is_suspect
            finally:
                await worker.stop()
    return failed


def _print(seen: Examined, confirmed: str, torch: str, args: argparse.Namespace) -> None:
    verdict, key = seen.verdict, seen.signature
    if args.json:
        line: dict[str, Any] = {
            "file": seen.program.source,
            "kind": verdict.kind.value,
            "stage": verdict.stage,
            "signature": {"major": key.major, "minor": key.minor} if verdict.is_suspect else None,
            "debatable": verdict.debatable,
            "reason": verdict.reason,
            "gates": [list(gate) for gate in verdict.gates],
            "seconds": round(seen.observation.seconds, 3),
            "target": torch,
            "confirmed": confirmed,
        }
        print(json.dumps(line), flush=True)
        return
    debatable = f" (debatable: {verdict.debatable})" if verdict.debatable else ""
    where = f" at {verdict.stage}" if verdict.stage else ""
    shown = f"{seen.program.source}: {verdict.kind.value}{where}{debatable} {verdict.reason}"
    print(printable(shown.rstrip()), flush=True)
    if confirmed:
        print(f"    confirmed in {confirmed} fresh processes")
    if args.verbose:
        if seen.first.kind is not verdict.kind:
            print(f"    first sight: {seen.first.kind.value}: {seen.first.reason}")
        for name, outcome in verdict.gates:
            print(f"    gate {name}: {outcome}")
        for stage in seen.observation.stages:
            print(f"    stage {stage.name}: {stage.seconds:.3f} s" + (f", {stage.fault.type}" if stage.fault else ""))
        for text in seen.observation.log.strip().splitlines()[-20:]:
            print(f"    | {printable(text)}")
