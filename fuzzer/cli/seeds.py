"""``eddy seeds``: seed programs from compiler tests, scripts and recorded calls; and what a folder of seeds holds."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzer.cli import common, from_issue
from fuzzer.exits import Exit, UserError
from fuzzer.screen import printable
from fuzzer.seeds.check import Checked, check_all, write_programs
from fuzzer.seeds.importer import NOT_FOR_US, Imported, import_paths
from fuzzer.seeds.listing import list_seeds
from fuzzer.seeds.record import record_script
from fuzzer.seeds.recorded import programs_of
from fuzzer.seeds.shipped import SHIPPED
from fuzzer.verdict import Kind, Verdict

_SHOWN_REASONS = 12


def add(parsers: Any) -> None:
    parser = parsers.add_parser("seeds", help="make seed programs of tests and scripts, list seeds")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    _add_import(actions)
    _add_trace(actions)
    _add_list(actions)
    from_issue.add(actions)


def _add_import(actions: Any) -> None:
    parser = actions.add_parser(
        "import",
        help="turn compiler tests and scripts into programs",
        description="Find the compiled functions and inputs of tests (unittest, pytest) and scripts, write each as a "
        "program of its own, run it, and say why others cannot be used.",
    )
    parser.add_argument("paths", nargs="+", metavar="PATH", help="Python files, or folders of them")
    parser.add_argument("--out", metavar="DIR", help="write the runnable programs there")
    parser.add_argument("--eager", action="store_true", help="only run them eagerly: fast, and nothing is judged")
    parser.add_argument(
        "--workers", type=common.positive, metavar="N", help="fork servers (default: one a core, at most 8)"
    )
    common.add_target_options(parser)
    parser.set_defaults(run=run_import)


def _add_trace(actions: Any) -> None:
    parser = actions.add_parser(
        "trace",
        help="record the calls that a script makes, as programs",
        description="Run SCRIPT as it is, record its calls of torch, and write chains of them as programs. Options of "
        "eddy stand before SCRIPT; everything after it is the script's own.",
    )
    parser.add_argument("--out", metavar="DIR", required=True, help="write the runnable programs there")
    common.add_target_options(parser)
    parser.add_argument("script", metavar="SCRIPT")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, metavar="ARGS", help="arguments of the script")
    parser.set_defaults(run=run_trace)


def _add_list(actions: Any) -> None:
    parser = actions.add_parser("list", help="list seeds: those that ship, of a folder, of a campaign's corpus")
    parser.add_argument("dir", nargs="?", metavar="DIR", help="a folder or a campaign (default: the seeds that ship)")
    parser.add_argument("--json", action="store_true", help="a JSON line a seed")
    parser.set_defaults(run=run_list)


def run_trace(args: argparse.Namespace) -> int:
    target = _one_target(args)
    out = _folder(args.out)
    with common.scratch_folder() as scratch:
        status, recording = record_script(target.python, args.script, args.arguments, scratch)
        name = Path(args.script).name
        programs = programs_of(recording, name)
        checked = asyncio.run(check_all(programs, target, scratch, eager=True))
    written = write_programs([item.program for item in checked if item.runnable], out)
    error = recording.end.get("error", "") if recording.end else f"it was ended (status {status})"
    summary = {
        "script": args.script,
        "exit": status,
        "error": error,
        "calls": recording.end.get("calls", len(recording.calls)),
        "distinct": len(recording.calls),
        "unrecorded": recording.end.get("unrecorded", 0),
        "programs": len(programs),
        "runnable": len(written),
        "not_runnable": _counted([(item.why, f"{item.program.source} {item.detail}") for item in checked if item.why]),
        "written": [str(path) for path in written],
    }
    if args.json:
        print(json.dumps(summary))
    else:
        _print_trace(summary, out)
    return status if 0 <= status < 256 else 128 - status


def _print_trace(summary: dict[str, Any], out: Path) -> None:
    """To standard error: standard output is the script's."""
    lines = [f"{summary['calls']} calls of torch, {summary['distinct']} distinct, {summary['unrecorded']} not recorded"]
    if summary["error"]:
        lines.append(f"{summary['script']} failed: {summary['error']}; what it did till then is kept")
    for row in summary["not_runnable"][:_SHOWN_REASONS]:
        lines.append(f"{row['count']:6}  left out, {row['reason']} (such as {row['examples'][0][:110]})")
    lines.append(f"{summary['runnable']} of {summary['programs']} programs run, written to {out}")
    for line in lines:
        print(printable(line), file=sys.stderr)


def run_list(args: argparse.Namespace) -> int:
    listing = list_seeds(Path(args.dir) if args.dir else SHIPPED)
    for row in listing.rows:
        if args.json:
            print(json.dumps(row.to_map()))
            continue
        covered = "" if row.covered is None else " ".join(f"{name}+{n}" for name, n in row.covered.items() if n) or "-"
        print(printable(f"{row.id}  {row.mode:9} {row.engine or '-':9} {covered:24} {row.title or row.source}"))
        print(printable(f"    {' '.join(row.features)}"))
    for line in listing.skipped:
        print(f"skipped: {printable(line)}", file=sys.stderr)
    print(f"{len(listing.rows)} seeds, {len(listing.skipped)} files skipped", file=sys.stderr)
    return Exit.DONE


def run_import(args: argparse.Namespace) -> int:
    target = _one_target(args)
    if not args.eager and not target.fake:
        common.require_compiler()
    out = _folder(args.out) if args.out else None
    found = import_paths(args.paths)
    programs = [program for item in found for program in item.programs]
    with common.scratch_folder() as scratch:
        checked = asyncio.run(
            check_all(
                programs,
                target,
                scratch,
                workers=args.workers or min(8, os.cpu_count() or 1),
                eager=args.eager,
                progress=lambda done, item: _progress(done, len(programs), item),
            )
        )
    written = write_programs([item.program for item in checked if item.runnable], out) if out else []
    summary = _summary(found, checked, written)
    if args.json:
        print(json.dumps(summary))
    else:
        _print_import(summary)
    return Exit.DONE


def _one_target(args: argparse.Namespace) -> Any:
    if len(args.target or []) > 1:
        raise UserError("give one --target: seeds are checked once")
    return common.targets(args)[0]


def _folder(text: str) -> Path:
    path = Path(text)
    if path.exists() and not path.is_dir():
        raise UserError(f"--out {path}: is a file; name a folder")
    return path


def _progress(done: int, total: int, item: Checked) -> None:
    """A line a suspect, and one now and then: runs of minutes are not silent."""
    if item.verdict is not None and item.verdict.is_suspect:
        line = f"{item.program.source}: {item.verdict.kind.value} at {item.verdict.stage} {item.verdict.reason}"
        print(printable(line), file=sys.stderr, flush=True)
    if done % 50 == 0 or done == total:
        print(f"{done} of {total} programs", file=sys.stderr, flush=True)


def _summary(found: Sequence[Imported], checked: Sequence[Checked], written: Sequence[Path]) -> dict[str, Any]:
    good = {item.program.meta["source"] for item in checked if item.runnable}
    for_us = [item for item in found if item.reason not in NOT_FOR_US]
    kinds = Counter(item.verdict.kind.value for item in checked if item.runnable and item.verdict)
    return {
        "tests": len(found),
        "tests_for_cpu": len(for_us),
        "tests_imported": sum(bool(item.programs) for item in found),
        "tests_runnable": len(good),
        "programs": len(checked),
        "runnable": sum(item.runnable for item in checked),
        "not_imported": _counted([(item.reason, f"{item.test}: {item.detail}") for item in found if not item.programs]),
        "not_runnable": _counted(
            [(item.why, f"{item.program.meta['title']}: {item.detail}") for item in checked if item.why]
        ),
        "kinds": dict(kinds),
        "suspects": [_judged(item) for item in checked if item.verdict and item.verdict.is_suspect],
        "doubtful": [_judged(item) for item in checked if item.runnable and item.verdict and _doubtful(item.verdict)],
        "written": [str(path) for path in written],
    }


def _counted(reasons: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    counts = Counter(reason for reason, _detail in reasons)
    return [
        {"reason": reason, "count": count, "examples": [detail for why, detail in reasons if why == reason][:3]}
        for reason, count in counts.most_common()
    ]


def _doubtful(verdict: Verdict) -> bool:
    """Neither a pass nor a suspect: flaky, unsupported, a fault of our own."""
    return not verdict.is_suspect and verdict.kind is not Kind.PASS


def _judged(item: Checked) -> dict[str, Any]:
    verdict = item.verdict
    assert verdict is not None
    return {
        "program": item.program.source,
        "id": item.program.id,
        "kind": verdict.kind.value,
        "stage": verdict.stage,
        "debatable": verdict.debatable,
        "reason": verdict.reason,
    }


def _print_import(summary: dict[str, Any]) -> None:
    for_cpu = summary["tests_for_cpu"]
    share = f" ({100 * summary['tests_runnable'] / for_cpu:.0f} % of those for a CPU)" if for_cpu else ""
    print(f"tests found      {summary['tests']:6}")
    print(f"  for a CPU      {for_cpu:6}")
    print(f"  imported       {summary['tests_imported']:6}")
    print(f"  runnable       {summary['tests_runnable']:6}{share}")
    print(f"programs         {summary['programs']:6}, {summary['runnable']} of them runnable")
    for name, title in (
        ("not_imported", "no program, because"),
        ("not_runnable", "a program that does not run, because"),
    ):
        if summary[name]:
            print(f"\n{title}")
        for row in summary[name][:_SHOWN_REASONS]:
            print(f"{row['count']:6}  {printable(row['reason'])} (such as {printable(row['examples'][0])[:110]})")
        rest = sum(row["count"] for row in summary[name][_SHOWN_REASONS:])
        if rest:
            print(f"{rest:6}  other reasons (all with --json)")
    if summary["kinds"]:
        print("\njudged           " + ", ".join(f"{number} {kind}" for kind, number in summary["kinds"].items()))
    for row in summary["suspects"]:
        debatable = f" (debatable: {row['debatable']})" if row["debatable"] else ""
        print(f"  {row['program']}: {row['kind']} at {row['stage']}{debatable} {printable(row['reason'])[:140]}")
    if summary["written"]:
        print(f"\nwritten to {Path(summary['written'][0]).parent}; judge them again with: eddy exec DIR/*.py")
