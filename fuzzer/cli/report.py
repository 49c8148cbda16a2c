"""``eddy report``: a campaign as one HTML page, and its findings for CI."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.labels import precision, set_aside
from fuzzer.page.campaign import read_campaign
from fuzzer.page.junit import junit
from fuzzer.page.render import page
from fuzzer.page.sarif import sarif
from fuzzer.store import atomic


def add(parsers: Any) -> None:
    parser = parsers.add_parser("report", help="write a campaign as one HTML page, or its findings for CI")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--out", metavar="FILE", help="the page (default: DIR/report.html, unless for CI only)")
    parser.add_argument("--junit", metavar="FILE", help="findings as JUnit XML: open ones fail, others are skipped")
    parser.add_argument("--sarif", metavar="FILE", help="findings as SARIF 2.1.0")
    parser.add_argument("--json", action="store_true", help="what was written, on one line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    data = read_campaign(args.dir)
    written: dict[str, str] = {}
    if args.out or not (args.junit or args.sarif):
        out = Path(args.out) if args.out else data.directory.report_page
        written["html"] = _write(out, page(data, out.absolute().parent))
    if args.junit:
        written["junit"] = _write(Path(args.junit), junit(data))
    if args.sarif:
        written["sarif"] = _write(Path(args.sarif), json.dumps(sarif(data), indent=1) + "\n")
    still_open = sum(not set_aside(item, data.labels.get(item.signature.major)) for item in data.findings)
    if args.json:
        shares = precision(data.findings, data.labels).to_map()
        counts = {"findings": len(data.findings), "open": still_open, "precision": shares}
        print(json.dumps({"files": written, **counts, "problems": list(data.problems)}))
    else:
        print(f"{len(data.findings)} findings, {still_open} open → {', '.join(written.values())}")
    return 0


def _write(path: Path, text: str) -> str:
    try:
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"{path}: cannot be written ({error.strerror}); choose another file") from None
    return str(path)
