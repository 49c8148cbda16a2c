"""``eddy status``: how a campaign stands, running or not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from typing import Any

from fuzzer.finding import Finding
from fuzzer.screen import clock, printable
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.stats import read_status

#: A person reads bugs first, then what may be none.
_ORDER = ("confirmed", "debatable", "known", "flaky")


def add(parsers: Any) -> None:
    parser = parsers.add_parser("status", help="show how a campaign stands")
    parser.add_argument("dir", metavar="DIR")
    parser.add_argument("--json", action="store_true", help="every statistic, on one line")
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    status = read_status(directory)
    if args.json:
        print(json.dumps(status))
        return 0
    for name, text in _summary(status):
        print(f"{name:12} {text}")
    store = FindingStore(directory)
    findings = sorted(store.load_all(), key=lambda item: (_rank(item), -item.duplicates))
    if findings:
        print()
    for finding in findings:
        folder = store.folder(finding)
        name = folder.name if folder else finding.sig8
        print(f"{_state(finding):10} {finding.duplicates + 1:4}×  {name}")
        print(f"                  {printable(finding.reason)[:130]}")
    return 0


def _summary(status: Mapping[str, Any]) -> list[tuple[str, str]]:
    running = f"running, process {status['pid']}" if status.get("running") else f"stopped: {status.get('stop_reason')}"
    coverage = ", ".join(f"{name} {number:,}" for name, number in status.get("coverage", {}).items())
    findings = ", ".join(f"{number} {name}" for name, number in status.get("findings", {}).items())
    return [
        ("campaign", f"{status.get('directory', '')} ({running})"),
        ("torch", str(status.get("target_torch", ""))),
        ("run time", clock(float(status.get("run_time", 0)))),
        ("programs", f"{status.get('execs_done', 0):,} ({status.get('programs_per_hour', 0):,.0f} an hour)"),
        ("valid", f"{100 * status.get('valid_rate', 0):.1f} %"),
        ("conformity", f"{100 * status.get('conformity', 0):.0f} % of the asked features were realised"),
        ("operators", f"{status.get('operators_executed', 0)} executed"),
        ("coverage", f"{coverage} (beyond start-up)"),
        ("corpus", f"{status.get('corpus_count', 0):,} seeds"),
        ("findings", f"{findings}; {status.get('suspects_waiting', 0)} suspects wait for triage"),
    ]


def _state(finding: Finding) -> str:
    return "debatable" if finding.debatable and finding.state.value != "flaky" else finding.state.value


def _rank(finding: Finding) -> int:
    state = _state(finding)
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
