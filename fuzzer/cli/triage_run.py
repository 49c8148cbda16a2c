"""``eddy triage DIR`` (action ``run``) and ``eddy triage recheck``: the actions that execute programs."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from typing import Any

from fuzzer.cli import common
from fuzzer.exits import Exit, UserError
from fuzzer.finding import Finding, State
from fuzzer.known_issues import KnownIssues
from fuzzer.recheck import version_key
from fuzzer.screen import printable
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.triage_session import SessionOptions, TriageSession


def add_run(actions: Any) -> None:
    parser = actions.add_parser(
        "run", help="do what the campaign had no time for (may be left out)", description="Confirm, reduce, locate."
    )
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--budget", type=common.duration, default=0.0, metavar="TIME", help="begin nothing after TIME")
    parser.add_argument(
        "--workers", type=common.positive, metavar="N", help="fork servers (default: one a core, at most 8)"
    )
    parser.add_argument("--target", action="append", metavar="PYTHON", help="instead of the campaign's own targets")
    parser.add_argument("--json", action="store_true", help="machine-readable output on standard output")
    parser.set_defaults(run=run)


def add_recheck(actions: Any) -> None:
    parser = actions.add_parser("recheck", help="replay every finding on other builds of torch")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--target", action="append", required=True, metavar="PYTHON", help="an interpreter; repeatable")
    parser.add_argument("--json", action="store_true", help="machine-readable output on standard output")
    parser.set_defaults(run=run_recheck)


def run(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    with directory.lock():
        session = _session(directory, args, args.target, args.budget, args.workers or min(8, os.cpu_count() or 1))
        done = asyncio.run(_interruptible(session, session.run()))
    if args.json:
        print(json.dumps({**done.to_map(), "interrupted": session.stopped, "directory": str(directory.path)}))
    else:
        more = "" if done.complete else f"; continue with: eddy triage {args.dir}"
        suspects = f"{done.suspects} suspects triaged, {done.new} new findings"
        print(f"{suspects}; {done.steps} steps on {done.findings} findings; {done.left} left{more}")
        if done.lost:
            print(f"{done.lost} findings did not show this time; try eddy repro on them")
    return Exit.INTERRUPTED if session.stopped else Exit.DONE


def run_recheck(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    with directory.lock():
        session = _session(directory, args, args.target, 0.0)
        versions, moved = asyncio.run(_interruptible(session, _recheck(session)))
    store = FindingStore(directory)
    rows = [_row(store, finding, versions) for finding in store.load_all()]
    if args.json:
        print(json.dumps({"versions": versions, "rows": rows, "moved": [item.sig8 for item in moved]}))
    else:
        _print_table(rows, versions)
    return Exit.INTERRUPTED if session.stopped else Exit.DONE


async def _recheck(session: TriageSession) -> tuple[list[str], list[Finding]]:
    versions: list[str] = []
    for number in range(len(session.options.targets)):
        if not session.enough():
            versions.append(await session.recheck(number))
    complete = len(versions) == len(session.options.targets) and not session.stopped
    session.journal.close()
    return sorted(set(versions), key=version_key), session.settle(versions) if complete else []


def _row(store: FindingStore, finding: Finding, versions: list[str]) -> dict[str, Any]:
    folder = store.folder(finding)
    replays = finding.triage.get("replays", {})
    return {
        "id": folder.name if folder else finding.sig8,
        "kind": finding.kind.value,
        "state": finding.state.value,
        "found_on": str(finding.target.get("torch", "")),
        "versions": {torch: replays[torch] for torch in versions if torch in replays},
    }


def _print_table(rows: list[dict[str, Any]], versions: list[str]) -> None:
    """A row a finding: ``same`` fails alike, else what is seen instead."""
    cells = [["finding", *versions, ""]]
    for row in rows:
        seen = [row["versions"].get(torch) for torch in versions]
        words = ["–" if item is None else "same" if item["same"] else str(item["kind"]) for item in seen]
        cells.append([row["id"], *words, "fixed" if row["state"] == State.FIXED.value else ""])
    widths = [max(len(line[column]) for line in cells) for column in range(len(cells[0]))]
    for line in cells:
        print(printable("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip()))


def _session(
    directory: CampaignDirectory, args: argparse.Namespace, named: list[str] | None, seconds: float, workers: int = 1
) -> TriageSession:
    args.log_folder = directory.path  # where the trace of an internal error goes
    config = directory.config
    device = str(config.get("device", "cpu"))
    pythons = named or [str(python) for python in config.get("targets", [sys.executable])]
    if not pythons:
        raise UserError(f"{directory.config_file}: no targets; name one with --target PYTHON")
    targets = tuple(common.target(python, device) for python in pythons)
    if not all(target.fake for target in targets):
        common.require_compiler()
    options = SessionOptions(targets, str(config.get("plant", "")), seconds, workers=workers)

    def note(kind: str, text: str) -> None:
        print(printable(f"[{time.strftime('%H:%M:%S')}] {kind}: {text}"), file=sys.stderr, flush=True)

    return TriageSession(directory, options, common.load_operators(), KnownIssues.load(), note)


async def _interruptible(session: TriageSession, work: Any) -> Any:
    """The first signal lets what is under way come to an end, the second ends it."""
    task = asyncio.ensure_future(work)

    def interrupted() -> None:
        if session.stopped:
            task.cancel()
        session.stop()
        session.note("stop", "ending what is under way; once more to end it at once")

    with _signals(interrupted):
        try:
            return await task
        except asyncio.CancelledError:
            raise KeyboardInterrupt from None


@contextlib.contextmanager
def _signals(handle: Any) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    for number in numbers:
        loop.add_signal_handler(number, handle)
    try:
        yield
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)
