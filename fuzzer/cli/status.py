"""``eddy status``: how a campaign stands, running or not."""

from __future__ import annotations

import argparse
import json
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.stats import read_status


def add(parsers: Any) -> None:
    parser = parsers.add_parser("status", help="show how a campaign stands")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    status = read_status(directory)
    if args.json:
        print(json.dumps(status))
        return 0
    console = Console()
    table = Table(show_header=False, box=None)
    for name, value in status.items():
        if value not in ("", {}, None):
            table.add_row(name, Text(str(value)))
    console.print(table)
    findings = FindingStore(directory).load_all()
    listed = Table("state", "kind", "seen", "reason", box=None, title=f"{len(findings)} findings")
    for finding in findings:
        state = f"debatable ({finding.debatable})" if finding.debatable else finding.state.value
        count = str(finding.duplicates + 1)
        listed.add_row(Text(state), finding.kind.value, count, Text(f"{finding.sig8} {finding.reason}"[:110]))
    console.print(listed)
    return 0
