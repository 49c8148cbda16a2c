"""``eddy write``: programs only, run eagerly and never compiled; and the figures of the engines that wrote them."""

from __future__ import annotations

import argparse
import asyncio
import json
import signal
import sys
import time
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.exits import Exit, UserError
from fuzzer.features.detect import default_space
from fuzzer.screen import printable
from fuzzer.seeds.given import read_programs
from fuzzer.seeds.shipped import SHIPPED
from fuzzer.writing import RARE, Tally, Writing

_SAY_SECONDS = 10.0
_SHOWN = 12


def add(parsers: Any) -> None:
    parser = parsers.add_parser(
        "write",
        help="write programs and run them eagerly, not compiled",
        description="Write programs with the template engine, run each eagerly in a forked child, and tell how many "
        "are valid, how often what was asked is there, and which operators and features occur.",
    )
    parser.add_argument("--count", type=common.positive, default=1000, metavar="N", help="programs (default: 1000)")
    parser.add_argument("--out", metavar="DIR", help="write the programs there; a new or empty folder")
    parser.add_argument("--mutate", action="store_true", help="four of five are mutants of seeds and of programs")
    parser.add_argument("--seeds", metavar="PATH", help="seeds for --mutate (default: those that ship)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the random numbers (default: 0)")
    parser.add_argument("--workers", type=common.positive, default=1, metavar="N", help="fork servers (default: 1)")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    if len(args.target or []) > 1:
        raise UserError("give one --target: programs are written against one torch")
    if args.seeds and not args.mutate:
        raise UserError("--seeds is for --mutate; add it, or leave the seeds out")
    out = _empty_folder(Path(args.out)) if args.out else None
    seeds, skipped = read_programs(Path(args.seeds or SHIPPED)) if args.mutate else ([], [])
    for line in skipped:
        print(f"skipped: {printable(line)}", file=sys.stderr)
    writing = Writing(common.load_operators(), args.seed, seeds, out)
    started = time.monotonic()
    interrupted = asyncio.run(_drive(writing, args))
    summary = writing.tally.summary(list(default_space().features))
    summary = {"seconds": round(time.monotonic() - started, 1), "interrupted": interrupted, **summary}
    if args.json:
        print(json.dumps(summary))
    else:
        _print(summary)
        if out is not None:
            print(f"\nwritten to {out}; judge them with: eddy exec {out}/*.py")
    return Exit.INTERRUPTED if interrupted else Exit.DONE


def _empty_folder(path: Path) -> Path:
    if path.exists() and (not path.is_dir() or any(path.iterdir())):
        raise UserError(f"--out {path}: is there and not an empty folder; name a new one")
    return path


async def _drive(writing: Writing, args: argparse.Namespace) -> bool:
    """True when it was interrupted: the first signal ends it after the programs in flight, the second at once."""
    said = time.monotonic()

    def progress(tally: Tally, done: int) -> None:
        nonlocal said
        if time.monotonic() - said > _SAY_SECONDS:
            said = time.monotonic()
            shares = tally.shares(tally.outcomes)
            line = f"{done} of {args.count} programs, {100 * shares['valid'] / max(1, shares['programs']):.1f} % valid"
            print(f"{line}, {len(tally.operators)} operators", file=sys.stderr, flush=True)

    with common.scratch_folder() as folder:
        target = common.targets(args)[0]
        task = asyncio.ensure_future(writing.run(args.count, target, folder, args.workers, progress))

        def interrupt() -> None:
            if writing.stopping:
                task.cancel()
            writing.stopping = True

        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, interrupt)
        try:
            await task
        except asyncio.CancelledError:
            return True
        finally:
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.remove_signal_handler(number)
    return writing.stopping


def _print(summary: dict[str, Any]) -> None:
    head = f"{'engine':22} {'programs':>8} {'valid':>7} {'refused':>8} {'invalid':>8} {'died':>5} {'no program':>11}"
    print(f"{head} {'ms each':>8}")
    for name, row in summary["engines"].items():
        print(f"{_row(name, row)} {row['write_ms_median']:8.1f}")
    if summary["mutations"]:
        print("\n" + head)
        for name, row in sorted(summary["mutations"].items(), key=lambda item: item[1]["valid_or_refused"]):
            print(_row(name, row))
    print("\nrefused: by eager, as was meant (checks that compiled code must make too)")
    if summary["conformity"] is not None:
        print(f"conformity {100 * summary['conformity']:.1f} % (mean over features of realised / asked)")
        worst = sorted(
            (row["conformity"], name, row["asked"])
            for name, row in summary["features"].items()
            if row["conformity"] is not None
        )
        for share, name, asked in worst[:_SHOWN]:
            print(f"  {100 * share:5.1f} % of {asked:5}  {name}")
    rare = [f"{name} {summary['features'][name]['realised']}" for name in summary["features_rare"]]
    print(f"features realised fewer than {RARE} times: {len(rare)}{': ' if rare else ''}{', '.join(rare)}")
    print(f"operators of the catalogue {summary['operators_of_catalogue']}, dispatched {summary['operators_executed']}")
    for why, count in summary["undefined"].items():
        print(f"{count:6}  with an operation of undefined result: {why}")
    for row in summary["reasons"][:_SHOWN]:
        print(f"{row['count']:6}  {row['writer']}: {printable(row['why'])[:120]}")


def _row(name: str, row: dict[str, Any]) -> str:
    count = max(1, row["programs"])
    return (
        f"{name:22} {row['programs']:8} {100 * row['valid'] / count:6.1f}% {100 * row['refused'] / count:7.1f}% "
        f"{100 * row['invalid'] / count:7.1f}% {row['died']:5} {row['unwritten']:11}"
    )
