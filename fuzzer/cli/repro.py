"""``eddy repro``: does a failure still show?"""

from __future__ import annotations

import argparse
import asyncio
import json
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.examine import confirm, examine
from fuzzer.exits import Exit, UserError
from fuzzer.finding import Finding
from fuzzer.program import Program
from fuzzer.screen import printable
from fuzzer.worker import Worker, WorkerOptions


def add(parsers: Any) -> None:
    parser = parsers.add_parser("repro", help="reproduce a finding or a program's failure in fresh processes")
    parser.add_argument("what", metavar="FILE|FINDING", help="a program, or a finding's folder")
    parser.add_argument("--runs", type=int, default=3, metavar="N", help="fresh processes (default: 3)")
    parser.add_argument("--plant", choices=("relu", "log1p"), help="plant a bug in the target's children (self-test)")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    common.require_compiler()
    if args.runs < 1:
        raise UserError(f"--runs {args.runs}: give at least 1")
    path = Path(args.what)
    program = _of_finding(path) if path.is_dir() else common.read_program(args.what)
    shown, line = asyncio.run(_run(program, args))
    print(
        json.dumps(line)
        if args.json
        else printable(f"{line['file']}: {line['kind']}, shown in {line['confirmed']}: {line['reason']}")
    )
    return Exit.DONE if shown else Exit.NOT_REPRODUCED


def _of_finding(folder: Path) -> Program:
    try:
        finding = Finding.from_map(json.loads((folder / "finding.json").read_text(encoding="utf-8")))
    except OSError:
        raise UserError(f"{folder}: no finding.json in it; name a finding's folder or a program") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{folder}/finding.json: not a finding ({error})") from None
    return Program.parse(finding.shown_text, str(folder))


async def _run(program: Program, args: argparse.Namespace) -> tuple[bool, dict[str, Any]]:
    target = common.targets(args)[0]
    with common.scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), plant=args.plant))
        try:
            await worker.start()
            seen = await examine(worker, program)
            verdict = seen.verdict
            k, n = 0, 0
            if verdict.is_suspect:
                fresh = await confirm(target, folder, worker.cache, program, verdict, args.runs, args.plant)
                k, n = fresh.k, fresh.n
        finally:
            await worker.stop()
    torch = worker.ready.get("target", {}).get("torch", "")
    return k > 0, {
        "file": program.source,
        "kind": verdict.kind.value,
        "stage": verdict.stage,
        "reason": verdict.reason or "no fault",
        "debatable": verdict.debatable,
        "confirmed": f"{k} of {n} fresh processes",
        "target": torch,
    }
