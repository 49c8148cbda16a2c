"""``eddy triage``: what is left to do for findings, what a person says of them, and their list.

Sub-verbs are rows of ``ACTIONS``, each a function that adds its parser. Without one, ``run`` is meant.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator, Sequence
from typing import Any

from fuzzer.cli import triage_run
from fuzzer.exits import UserError
from fuzzer.finding import Finding
from fuzzer.grouping import Decisions, Group, group
from fuzzer.labels import Judgement, Label, Labels, Share, agreement, precision
from fuzzer.screen import printable
from fuzzer.severity import by_severity, severity
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.groups import GroupStore, decided
from fuzzer.store.labels import LabelStore

#: Takes a label back.
_NONE = "none"


def add(parsers: Any) -> None:
    parser = parsers.add_parser("triage", help="finish, list, label and group findings")
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
    listing = actions.add_parser("list", help="bugs by severity, with state and label")
    listing.add_argument("dir", metavar="DIR")
    listing.add_argument("--all", action="store_true", help="every finding, not only the gravest of each bug")
    listing.add_argument("--json", action="store_true", help="every finding")
    listing.set_defaults(run=run_list)


def _add_merge(actions: Any) -> None:
    merge = actions.add_parser("merge", help="say that findings are one bug")
    merge.add_argument("dir", metavar="DIR")
    merge.add_argument("id", nargs="+", metavar="ID", help="two findings or more")
    merge.add_argument("--json", action="store_true")
    merge.set_defaults(run=run_merge)


def _add_split(actions: Any) -> None:
    split = actions.add_parser("split", help="say that a finding is a bug of its own")
    split.add_argument("dir", metavar="DIR")
    split.add_argument("id", metavar="ID")
    split.add_argument("--json", action="store_true")
    split.set_defaults(run=run_split)


ACTIONS = {
    "run": triage_run.add_run,
    "list": _add_list,
    "label": _add_label,
    "merge": _add_merge,
    "split": _add_split,
    "recheck": triage_run.add_recheck,
}


def with_action(argv: Sequence[str]) -> list[str]:
    """``triage DIR …`` reads ``triage run DIR …``; a directory called like an action is written ``./list``."""
    words = list(argv)
    if words[:1] == ["triage"] and len(words) > 1 and words[1] not in (*ACTIONS, "-h", "--help"):
        words.insert(1, "run")
    return words


def run_merge(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    store = FindingStore(directory)
    majors = [find(store, prefix).signature.major for prefix in args.id]
    try:
        decisions = GroupStore(directory).change(lambda present: present.merge(majors))
    except ValueError as error:
        raise UserError(f"{error}; name another one as well") from None
    return _say_group(store, majors[0], decisions, args.json)


def run_split(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    store = FindingStore(directory)
    major = find(store, args.id).signature.major
    decisions = GroupStore(directory).change(lambda present: present.alone(major))
    return _say_group(store, major, decisions, args.json)


def _say_group(store: FindingStore, major: str, decisions: Decisions, as_json: bool) -> int:
    found = next(item for item in group(store.load_all(), decisions) if major in item.members)
    names = [_name_of_major(store, member) for member in found.members]
    line = {"representative": _name_of_major(store, found.representative), "members": names}
    print(json.dumps(line) if as_json else printable(" = ".join(names)))
    return 0


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
    groups = group(findings, decided(directory))
    of = {member: item for item in groups for member in item.members}
    lines = [_line(store, finding, labels, of[finding.signature.major]) for finding in findings]
    shares = {"precision": precision(findings, labels), "agreement": agreement(findings, labels)}
    if args.json:
        named = [
            {"representative": _name_of_major(store, item.representative), "size": len(item.members)} for item in groups
        ]
        told = {"findings": lines, "groups": named, **{name: share.to_map() for name, share in shares.items()}}
        print(json.dumps(told))
        return 0
    for shown, others in _shown(lines, args.all):
        label = f"[{' '.join(filter(None, (shown['label'], shown['label_of'])))}]" if shown["label"] else ""
        state = "debatable" if shown["debatable"] and shown["state"] != "flaky" else shown["state"]
        print(printable(f"{shown['severity']:9}{state:10}{shown['seen']:4}×  {shown['id']}  {label}".rstrip()))
        same = f"same bug as {shown['group']}: " if args.all and shown["group"] != shown["id"] else ""
        print(printable(f"{'':27}{same}{shown['reason'][:130]}"))
        if others:
            print(printable(f"{'':27}the same bug: {', '.join(other['id'][:8] for other in others)}"))
    if not lines:
        print("no findings yet")
    if len(groups) < len(lines):
        words = "" if args.all else "--all lists each; "
        print(f"\n{len(lines)} findings, {len(groups)} bugs ({words}eddy triage merge DIR ID ID, split DIR ID)", end="")
    print(f"\nprecision {percent(shares['precision'])}; agreement {percent(shares['agreement'])}")
    return 0


def _shown(lines: list[dict[str, Any]], every: bool) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """What the list shows, with other findings of the same bug: ``every`` line alone, or one of each bug, the gravest
    that nobody labelled a duplicate."""
    together: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        together.setdefault(line["id"] if every else line["group"], []).append(line)
    for alike in together.values():
        first = next((line for line in alike if not line["label_of"]), alike[0])
        yield first, [line for line in alike if line is not first]


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


def _line(store: FindingStore, finding: Finding, labels: Labels, together: Group | None = None) -> dict[str, Any]:
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
        "group": _name_of_major(store, together.representative) if together else name_of(store, finding),
        "seen": finding.duplicates + 1,
        "reason": finding.reason,
        "signature": finding.signature.major,
    }
