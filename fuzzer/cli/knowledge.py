"""``eddy knowledge``: derive the operators of a target; show, search and check what is known; import issues."""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.exits import Exit, UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge import lint
from fuzzer.knowledge.build import write_extract
from fuzzer.knowledge.issues import CAUSES, TASKS, IssueIndex, read_issues
from fuzzer.knowledge.operators import Operator, Operators
from fuzzer.knowledge.patterns import Entry, Loaded, Pattern, default_entries, load_patterns, load_subgraphs
from fuzzer.knowledge.search import documents, search
from fuzzer.screen import printable
from fuzzer.worker import Target, Worker, WorkerOptions


def add(parsers: Any) -> None:
    parser = parsers.add_parser("knowledge", help="operators, features, bug patterns, subgraphs, issues")
    verbs = parser.add_subparsers(dest="knowledge_verb", required=True, metavar="VERB")
    build = verbs.add_parser("build", help="derive the operators of a target")
    build.add_argument("--out", required=True, metavar="FILE", help="where to write the extract")
    common.add_target_options(build)
    build.set_defaults(run=run_build)
    show = verbs.add_parser("show", help="show an operator, feature, pattern or subgraph; without a name, counts")
    show.add_argument("name", nargs="?", metavar="ID", help="an operator's key, a feature, or the id of an entry")
    show.add_argument("--json", action="store_true")
    show.set_defaults(run=run_show)
    find = verbs.add_parser("search", help="find operators, features, patterns and subgraphs by words")
    find.add_argument("words", nargs="+", metavar="WORD")
    find.add_argument("--limit", type=common.positive, default=10, metavar="N", help="hits shown (default: 10)")
    find.add_argument("--json", action="store_true")
    find.set_defaults(run=run_search)
    stats = verbs.add_parser("stats", help="count entries by kind and family, and near-duplicates")
    stats.add_argument("--json", action="store_true")
    stats.set_defaults(run=run_stats)
    check = verbs.add_parser("lint", help="check patterns and subgraphs")
    check.add_argument("--strict", action="store_true", help="stop at the first malformed entry")
    check.add_argument("--run", dest="execute", action="store_true", help="run every example eagerly, too")
    common.add_target_options(check)
    check.set_defaults(run=run_lint)
    _add_issues(verbs)


def _add_issues(verbs: Any) -> None:
    imported = verbs.add_parser("import-issues", help="classify and index the issues of a tracker's dump")
    imported.add_argument("file", metavar="FILE", help="JSON lines (number, title, body, labels, state) or Markdown")
    imported.add_argument("--out", required=True, metavar="INDEX", help="index to make or to add to")
    imported.add_argument("--json", action="store_true")
    imported.set_defaults(run=run_import)
    similar = verbs.add_parser("similar", help="indexed issues that look like a text")
    similar.add_argument("text", metavar="TEXT", help="a message, a title; - reads standard input")
    similar.add_argument("--index", required=True, metavar="INDEX")
    similar.add_argument("--json", action="store_true")
    similar.set_defaults(run=run_similar)
    verify = verbs.add_parser("verify", help="classify an indexed issue by hand")
    verify.add_argument("number", type=common.positive, metavar="NUMBER")
    verify.add_argument("--index", required=True, metavar="INDEX")
    verify.add_argument("--task", required=True, metavar="TASK", help=", ".join(TASKS))
    verify.add_argument("--cause", required=True, metavar="CAUSE", help=", ".join(CAUSES))
    verify.add_argument("--json", action="store_true")
    verify.set_defaults(run=run_verify)


# --- operators ----------------------------------------------------------------------------------------------------


def run_build(args: argparse.Namespace) -> int:
    operators = asyncio.run(_build(common.targets(args)[0], Path(args.out)))
    families = {family: len(members) for family, members in sorted(operators.by_family.items())}
    if args.json:
        print(json.dumps({"operators": len(operators), "families": families, "file": args.out}))
    else:
        print(f"{len(operators)} operators in {len(families)} families → {args.out}")
    return 0


async def _build(target: Target, out: Path) -> Operators:
    with common.scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), warm=False))
        try:
            ready = await worker.start()
            say = lambda line: print(f"… {line}", file=sys.stderr, flush=True)  # noqa: E731
            records = [record async for record in worker.catalogue(say)]
        finally:
            await worker.stop()
    facts = {name: str(value) for name, value in ready["target"].items()}
    return write_extract(records, out, facts)


# --- show and search ----------------------------------------------------------------------------------------------


def run_show(args: argparse.Namespace) -> int:
    operators, space = common.load_operators(), FeatureSpace.load()
    entries = {entry.id: entry for entry in default_entries()}
    if args.name is None:
        shown = _counts(operators, space, list(entries.values()))
    elif args.name in space.features:
        feature = space.features[args.name]
        shown = {"feature": feature.id, "description": feature.description, "how": feature.how}
    elif args.name in entries:
        shown = _entry(entries[args.name])
    elif args.name in operators.by_key:
        shown = _operator(operators, operators.by_key[args.name])
    else:
        raise UserError(
            f"{args.name!r} is neither an operator nor a feature nor an entry; `eddy knowledge search` finds names"
        )
    print(json.dumps(shown, indent=None if args.json else 2))
    return 0


def _counts(operators: Operators, space: FeatureSpace, entries: Sequence[Entry]) -> dict[str, Any]:
    kinds = Counter(entry.kind for entry in entries)
    families = {family: len(members) for family, members in sorted(operators.by_family.items())}
    return {
        "operators": len(operators),
        "families": families,
        "features": len(space.features),
        "patterns": kinds["pattern"],
        "subgraphs": kinds["subgraph"],
    }


def _operator(operators: Operators, operator: Operator) -> dict[str, Any]:
    return {
        "operator": operator.key,
        "family": operator.family,
        "forms": [form.text for form in operator.forms],
        "dtypes": list(operator.dtypes),
        "autograd": operator.autograd,
        "lowering": operator.lowering,
        "schema": list(operator.schema),
        "calls": [call.record() for call in operator.calls],
        "neighbours": [other.key for other in operators.neighbours(operator)[:8]],
    }


def _entry(entry: Entry) -> dict[str, Any]:
    shown: dict[str, Any] = {entry.kind: entry.id, "title": entry.title, "family": entry.family}
    if isinstance(entry, Pattern):
        shown |= {"trigger": entry.trigger.text, "action": entry.action, "oracle": entry.oracle}
        shown |= {"issues": list(entry.issues), "versions": list(entry.versions), "refused": entry.refused}
    else:
        shown |= {"about": entry.about}
    shown |= {"brings": list(entry.brings), "weight": entry.weight, "on": sorted(entry.template.on)}
    return {**shown, "code": entry.template.code.splitlines(), "example": lint.example(entry).text}


def run_search(args: argparse.Namespace) -> int:
    known = documents(common.load_operators(), FeatureSpace.load(), default_entries())
    for hit in search(" ".join(args.words), known, args.limit):
        document = hit.document
        if args.json:
            found = {"kind": document.kind, "id": document.id, "title": document.title}
            print(json.dumps({**found, "score": round(hit.score, 3)}))
        else:
            print(f"{document.kind:9} {document.id:44} {document.title}")
    return 0


# --- stats and lint -----------------------------------------------------------------------------------------------


def run_stats(args: argparse.Namespace) -> int:
    entries = default_entries()
    families = {
        kind: Counter(entry.family for entry in entries if entry.kind == kind) for kind in ("pattern", "subgraph")
    }
    alike = [[left.id, right.id] for left, right in lint.near_duplicates(entries)]
    issues = sorted({issue for entry in entries if isinstance(entry, Pattern) for issue in entry.issues})
    shown: dict[str, Any] = {f"{kind}s": sum(found.values()) for kind, found in families.items()}
    shown |= {f"{kind}_families": dict(sorted(found.items())) for kind, found in families.items()}
    shown |= {"issues_cited": len(issues), "near_duplicates": alike}
    if args.json:
        print(json.dumps(shown))
        return 0
    for kind, found in families.items():
        print(f"{sum(found.values())} {kind}s in {len(found)} families")
        for family, count in sorted(found.items()):
            print(f"  {count:4} {family}")
    print(f"{len(issues)} issues cited; {len(alike)} near-duplicates")
    for left, right in alike:
        print(f"  {left} ~ {right}")
    return 0


def run_lint(args: argparse.Namespace) -> int:
    loaded: tuple[Loaded, ...] = (load_patterns(strict=args.strict), load_subgraphs(strict=args.strict))
    entries = [entry for part in loaded for entry in part.entries]
    operators = common.load_operators()
    faults = [fault for part in loaded for fault in part.faults]
    faults += map(str, lint.check(entries, FeatureSpace.load(), operators.families, lint.operator_names(operators)))
    if args.execute:
        faults += asyncio.run(_run_examples(entries, operators, common.targets(args)[0]))
    if args.json:
        print(json.dumps({"ok": not faults, "entries": len(entries), "faults": faults}))
    else:
        for line in faults:
            print(printable(line))
        print(f"{len(entries)} entries, {len(faults)} faults{'' if args.execute else ' (--run executes the examples)'}")
    return Exit.FINDING if faults else Exit.DONE


async def _run_examples(entries: Sequence[Entry], operators: Operators, target: Target) -> list[str]:
    with common.scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), warm=False))
        try:
            await worker.start()
            return [str(fault) for fault in await lint.run_examples(entries, worker, operators)]
        finally:
            await worker.stop()


# --- issues -------------------------------------------------------------------------------------------------------


def run_import(args: argparse.Namespace) -> int:
    issues, faults = read_issues(Path(args.file))
    with IssueIndex(Path(args.out), create=True) as index:
        count, counts = index.add(issues), index.counts()
    if args.json:
        print(json.dumps({"imported": count, "faults": faults, **counts}))
        return 0
    for line in faults:
        print(printable(line), file=sys.stderr)
    print(f"{count} issues → {args.out}")
    for column, found in counts.items():
        print(f"  by {column}: " + ", ".join(f"{name} {number}" for name, number in found.items()))
    return 0


def run_similar(args: argparse.Namespace) -> int:
    text = sys.stdin.read() if args.text == "-" else args.text
    with IssueIndex(Path(args.index)) as index:
        for found in index.similar(text):
            if args.json:
                print(json.dumps(dataclasses.asdict(found)))
            else:
                print(printable(f"#{found.number:<8} {found.task:22} {found.cause:22} {found.title}"))
    return 0


def run_verify(args: argparse.Namespace) -> int:
    with IssueIndex(Path(args.index)) as index:
        index.verify(args.number, args.task, args.cause)
        agreement = index.agreement()
    if args.json:
        print(json.dumps(agreement))
    else:
        print(
            f"{agreement['verified']} verified by a person; the rules agree on {agreement['task']:.0%} of the tasks "
            f"and {agreement['cause']:.0%} of the causes"
        )
    return 0
