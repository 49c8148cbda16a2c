"""``eddy coverage``: what a campaign covered, what never was, and which features reach what."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.coverage_report import PARTS, Covered, open_campaign, render, report, write_coverage_py, write_lcov

_COVERAGE_PY = (
    "write a data file for `coverage report` and `coverage html`: lines of the compiler that the campaign reached "
    "(context `campaign`) and those of start-up (context `start-up`); lines that run on import show as missed"
)
_LCOV = "write an lcov tracefile of C++ functions; source files in it are namespaces, for a release build has no lines"


def add(parsers: Any) -> None:
    parser = parsers.add_parser("coverage", help="show what a campaign covered, and what it never did")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument(
        "--domain", action="append", choices=PARTS, metavar="|".join(PARTS), help="only this part; may be repeated"
    )
    parser.add_argument("--top", type=common.positive, default=15, metavar="N", help="rows a table (default: 15)")
    parser.add_argument("--target", metavar="PYTHON", help="interpreter that has the campaign's torch now")
    parser.add_argument(
        "--no-start", action="store_true", help="start no fork server to measure what start-up alone covers"
    )
    parser.add_argument("--coverage-py", type=Path, metavar="FILE", help=_COVERAGE_PY)
    parser.add_argument("--lcov", type=Path, metavar="FILE", help=_LCOV)
    parser.add_argument("--json", action="store_true", help="everything, on one line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    def progress(line: str) -> None:
        if sys.stderr.isatty():
            print(line, file=sys.stderr)

    parts = tuple(part for part in PARTS if not args.domain or part in args.domain)
    with common.scratch_folder() as scratch:
        # Only Python lines and C++ functions have a start-up to be told from.
        may_start = not args.no_start and (bool(args.coverage_py or args.lcov) or parts != ("features",))
        covered = open_campaign(args.dir, args.target, may_start, scratch, progress)
    if args.coverage_py or args.lcov:
        return _export(covered, args)
    made = report(covered, parts)
    print(json.dumps(made) if args.json else render(made, args.top, shutil.get_terminal_size((120, 24)).columns))
    return 0


def _export(covered: Covered, args: argparse.Namespace) -> int:
    written: dict[str, dict[str, Any]] = {}
    if args.coverage_py:
        written["coverage_py"] = {"file": str(args.coverage_py), "lines": write_coverage_py(covered, args.coverage_py)}
    if args.lcov:
        hit, total = write_lcov(covered, args.lcov)
        written["lcov"] = {"file": str(args.lcov), "reached": hit, "functions": total}
    if args.json:
        print(json.dumps({**written, "notes": covered.notes}))
        return 0
    for note in covered.notes:
        print(f"note: {note}", file=sys.stderr)
    if args.coverage_py:
        lines = written["coverage_py"]["lines"]
        print(f"{args.coverage_py}: {lines:,} lines; coverage html --data-file={args.coverage_py}")
    if args.lcov:
        print(f"{args.lcov}: {written['lcov']['reached']:,} of {written['lcov']['functions']:,} functions reached")
    return 0
