"""``eddy reduce``: the smallest program that still shows the same failure."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.examine import examine
from fuzzer.exits import Exit, UserError
from fuzzer.program import Program
from fuzzer.reduce.measure import statements
from fuzzer.screen import printable
from fuzzer.signature import Signature, signature
from fuzzer.store import atomic
from fuzzer.triage import Reduced, reduced
from fuzzer.verdict import Verdict
from fuzzer.worker import Worker, WorkerOptions

#: Executions, of about a second each.
_BUDGET = 200


@dataclass(frozen=True)
class _Outcome:
    """``small`` is None for a program that does not fail."""

    verdict: Verdict
    small: Reduced | None = None
    before: Signature | None = None
    seconds: float = 0.0


def add(parsers: Any) -> None:
    parser = parsers.add_parser(
        "reduce", help="make a failing program small", description="Reduce FILE as long as the same failure shows."
    )
    parser.add_argument("file", metavar="FILE", help="a program; - reads standard input")
    parser.add_argument("--out", metavar="FILE", help="where the smaller program goes (default: standard output)")
    parser.add_argument(
        "--budget", type=common.positive, default=_BUDGET, metavar="N", help=f"executions at most (default: {_BUDGET})"
    )
    parser.add_argument("--plant", choices=("relu", "log1p"), help="plant a bug in the target's children (self-test)")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    target = common.targets(args)[0]
    if not target.fake:
        common.require_compiler()
    program = common.read_program(args.file)
    outcome = asyncio.run(_run(program, args))
    if outcome.small is None:
        passed = {"file": program.source, "kind": outcome.verdict.kind.value, "reason": outcome.verdict.reason}
        said = f"{program.source}: {outcome.verdict.kind.value}: nothing to reduce, the program does not fail"
        print(json.dumps({"ok": False, **passed}) if args.json else printable(said))
        return Exit.NOT_REPRODUCED
    if args.out:
        _write(args.out, outcome.small.program.text)
    elif not args.json:
        print(outcome.small.program.text, end="")
    line = _line(program, outcome, args.out)
    if args.json:
        print(json.dumps(line))
        return Exit.DONE
    before, after = line["statements"]
    ended = "nothing left to try" if line["complete"] else "budget spent; --budget N gives more"
    same = "same signature" if line["same_signature"] else f"signature now {line['signature']['major']}"
    print(printable(f"{program.source}: {line['kind']}: {line['reason']}"), file=sys.stderr)
    print(
        printable(
            f"statements {before} → {after}; {line['executions']} executions, {line['seconds']} s; {ended}; {same}"
        ),
        file=sys.stderr,
    )
    for slip in line["slips"]:
        print(printable(f"met on the way: {slip['kind']}: {slip['reason']}"), file=sys.stderr)
    return Exit.DONE


async def _run(program: Program, args: argparse.Namespace) -> _Outcome:
    started = time.monotonic()
    with common.scratch_folder() as folder:
        options = WorkerOptions(coverage=(), plant=args.plant)
        worker = Worker(common.targets(args)[0], folder / "worker", options)
        try:
            await worker.start()
            seen = await examine(worker, program)
            if not seen.verdict.is_suspect:
                return _Outcome(seen.verdict)
            small = await reduced(worker, seen.program, seen.observation, seen.verdict, args.budget)
        finally:
            await worker.stop()
    return _Outcome(seen.verdict, small, seen.signature, round(time.monotonic() - started, 1))


def _line(program: Program, outcome: _Outcome, out: str | None) -> dict[str, Any]:
    small, verdict = outcome.small, outcome.verdict
    assert small is not None and outcome.before is not None
    key = signature(small.verdict, small.observation)
    return {
        "ok": True,
        "file": program.source,
        "out": out or "",
        "kind": small.verdict.kind.value,
        "stage": small.verdict.stage,
        "reason": small.verdict.reason or verdict.reason,
        "debatable": small.verdict.debatable,
        "signature": {"major": key.major, "minor": key.minor},
        "same_signature": key.major == outcome.before.major,
        "statements": [statements(program), statements(small.program)],
        "executions": small.executions,
        "complete": small.complete,
        "seconds": outcome.seconds,
        "text": small.program.text,
        "slips": [
            {"kind": slip.verdict.kind.value, "reason": slip.verdict.reason, "text": slip.program.text}
            for slip in small.slips
        ],
    }


def _write(path: str, text: str) -> None:
    try:
        atomic.write_text(Path(path), text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); name another file with --out") from None
