"""``eddy triage``: what a person says of findings, and the findings in the order in which to read them.

Sub-verbs are rows of ``ACTIONS``; each has ``add(actions)`` of its own below.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from fuzzer.exits import UserError
from fuzzer.finding import Finding
from fuzzer.labels import Judgement, Label, Labels, Share, agreement, precision
from fuzzer.screen import printable
from fuzzer.severity import by_severity, severity
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore

#: Takes a label back.
_NONE = "none"


def add(parsers: Any) -> None:
    parser = parsers.add_parser("triage", help="label findings, list them by severity")
    actions = parser.add_subparsers(dest="action", required=True, metavar="|".join(ACTIONS))
    for add_action in ACTIONS.values():
        add_action(actions)


def _add_label(actions: Any) -> None:
    label = actions.add_parser("label", help="say what a finding is")
    label.add_argument("dir", metavar="DIR")
    label.add_argument("id", metavar="ID", help="the beginning of the finding's folder name or signature")
    label.add_argument("label", choices=[*(item.value for item in Label), _NONE], help=f"{_NONE} takes a label back")
    label.add_argument("--of", metavar="ID", help="of which finding it is a duplicate")
    label.add_argument("--why", default="", metavar="TEXT", help="for the record; needed with ignored")
    label.add_argument("--json", action="store_true")
    label.set_defaults(run=run_label)


def _add_list(actions: Any) -> None:
    listing = actions.add_parser("list", help="findings by severity, with state and label")
    listing.add_argument("dir", metavar="DIR")
    listing.add_argument("--json", action="store_true")
    listing.set_defaults(run=run_list)


ACTIONS = {"label": _add_label, "list": _add_list}


def run_label(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    store = FindingStore(directory)
    finding = find(store, args.id)
    major = finding.signature.major
    if (args.label == Label.DUPLICATE_OF.value) != bool(args.of):
        raise UserError("--of ID belongs to duplicate-of, and duplicate-of needs it: name the finding that it repeats")
    other = find(store, args.of) if args.of else None
    try:
        if args.label == _NONE:
            labels = LabelStore(directory).change(lambda present: present.without(major))
        else:
            of = other.signature.major if other else ""
            judgement = Judgement(Label(args.label), of, " ".join(args.why.split()), int(time.time()))
            labels = LabelStore(directory).change(lambda present: present.with_label(major, judgement))
    except ValueError as error:
        needed = "; give --why TEXT" if args.label == Label.IGNORED.value else ""
        raise UserError(f"{name_of(store, finding)}: {error}{needed}") from None
    line = _line(store, finding, labels)
    print(json.dumps(line) if args.json else printable(f"{line['id']}: {line['label'] or 'no label'}"))
    return 0


def run_list(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    store = FindingStore(directory)
    labels = LabelStore(directory).read()
    findings = by_severity(store.load_all())
    lines = [_line(store, finding, labels) for finding in findings]
    shares = {"precision": precision(findings, labels), "agreement": agreement(findings, labels)}
    if args.json:
        print(json.dumps({"findings": lines, **{name: share.to_map() for name, share in shares.items()}}))
        return 0
    for line in lines:
        label = f"[{' '.join(filter(None, (line['label'], line['label_of'])))}]" if line["label"] else ""
        state = "debatable" if line["debatable"] and line["state"] != "flaky" else line["state"]
        print(printable(f"{line['severity']:9}{state:10}{line['seen']:4}×  {line['id']}  {label}".rstrip()))
        print(printable(f"{'':27}{line['reason'][:130]}"))
    if not lines:
        print("no findings yet")
    print(f"\nprecision {percent(shares['precision'])}; agreement {percent(shares['agreement'])}")
    return 0


def percent(share: Share) -> str:
    """``80 % (4 of 5 labelled; 95 % interval 36–98 %)``."""
    if share.value is None:
        return "unknown (nothing labelled; eddy triage label DIR ID real|not-a-bug|…)"
    low, high = share.interval
    return (
        f"{100 * share.value:.0f} % ({share.part} of {share.whole} labelled; "
        f"95 % interval {100 * low:.0f}–{100 * high:.0f} %)"
    )


def find(store: FindingStore, prefix: str) -> Finding:
    """The one finding meant by a path, by its folder's whole name, or by the beginning of that name, of the slug in
    it, or of the signature.

    Raises ``UserError`` when none or several fit.
    """
    findings = {name_of(store, item): item for item in store.load_all()}
    if prefix in findings:
        return findings[prefix]
    fitting = {
        name: item
        for name, item in findings.items()
        if prefix and any(text.startswith(prefix) for text in (name, name.partition("-")[2], item.signature.major))
    }
    if len(fitting) > 1:
        raise UserError(f"{prefix!r} fits {len(fitting)} findings ({', '.join(sorted(fitting)[:5])}); give more of it")
    return next(iter(fitting.values())) if fitting else store.find(prefix)


def name_of(store: FindingStore, finding: Finding) -> str:
    folder = store.folder(finding)
    return folder.name if folder else finding.sig8


def _name_of_major(store: FindingStore, major: str) -> str:
    finding = store.get(major)
    return name_of(store, finding) if finding else major


def _line(store: FindingStore, finding: Finding, labels: Labels) -> dict[str, Any]:
    judgement = labels.get(finding.signature.major)
    weight = severity(finding)
    return {
        "id": name_of(store, finding),
        "severity": weight.word,
        "rank": weight.rank,
        "why": weight.reason,
        "kind": finding.kind.value,
        "state": finding.state.value,
        "debatable": finding.debatable,
        "known_issue": finding.known_issue,
        "label": judgement.label.value if judgement else "",
        "label_of": _name_of_major(store, judgement.of) if judgement and judgement.of else "",
        "label_why": judgement.why if judgement else "",
        "seen": finding.duplicates + 1,
        "reason": finding.reason,
        "signature": finding.signature.major,
    }
