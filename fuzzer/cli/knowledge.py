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

from fuzzer.cli import common, llm_issues
from fuzzer.exits import Exit, UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge import lint
from fuzzer.knowledge.agreement import agreement, read_sheet, sheet
from fuzzer.knowledge.build import write_extract
from fuzzer.knowledge.changes import Changes, Part, by_folder
from fuzzer.knowledge.inventory import take
from fuzzer.knowledge.issues import CAUSES, TASKS, IssueIndex, read_issues
from fuzzer.knowledge.operators import Operator, Operators
from fuzzer.knowledge.patterns import Entry, Loaded, Pattern, default_entries, load_patterns, load_subgraphs
from fuzzer.knowledge.search import documents, search
from fuzzer.screen import printable
from fuzzer.store import atomic
from fuzzer.worker import Target, Worker, WorkerOptions

#: Names and files that the table for people shows of each part.
_NAMES_SHOWN, _FILES_SHOWN = 12, 20


def add(parsers: Any) -> None:
    parser = parsers.add_parser("knowledge", help="operators, features, bug patterns, subgraphs, issues")
    verbs = parser.add_subparsers(dest="knowledge_verb", required=True, metavar="VERB")
    build = verbs.add_parser("build", help="derive the operators of a target")
    build.add_argument("--out", required=True, metavar="FILE", help="where to write the extract")
    common.add_target_options(build)
    build.set_defaults(run=run_build)
    diff = verbs.add_parser("diff", help="what changed between two torch installs: operators, lowerings, sources")
    diff.add_argument("--old", required=True, metavar="PYTHON", help="interpreter with the older torch")
    diff.add_argument("--new", required=True, metavar="PYTHON", help="interpreter with the newer torch")
    diff.add_argument("--out", metavar="FILE", help="write it down, for `eddy fuzz --changed FILE`")
    diff.add_argument("--json", action="store_true", help="all names, on one line")
    diff.set_defaults(run=run_diff)
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
    llm_issues.add_options(imported)
    imported.set_defaults(run=run_import)
    similar = verbs.add_parser("similar", help="indexed issues that look like a text")
    similar.add_argument("text", metavar="TEXT", help="a message, a title; - reads standard input")
    similar.add_argument("--index", required=True, metavar="INDEX")
    similar.add_argument("--json", action="store_true")
    similar.set_defaults(run=run_similar)
    verify = verbs.add_parser("verify", help="classify an indexed issue by hand")
    verify.add_argument("number", nargs="?", type=common.positive, metavar="NUMBER")
    verify.add_argument("--index", required=True, metavar="INDEX")
    verify.add_argument("--task", metavar="TASK", help=", ".join(TASKS))
    verify.add_argument("--cause", metavar="CAUSE", help=", ".join(CAUSES))
    verify.add_argument(
        "--from", dest="sheet", metavar="FILE", help="a sheet of `sample`, filled in, in place of one issue"
    )
    verify.add_argument("--json", action="store_true")
    verify.set_defaults(run=run_verify)
    sample = verbs.add_parser("sample", help="draw issues for a person to classify")
    sample.add_argument("--index", required=True, metavar="INDEX")
    sample.add_argument("--count", type=common.positive, default=30, metavar="N", help="issues (default: 30)")
    sample.add_argument("--seed", type=int, default=0, metavar="N", help="random seed (default: 0)")
    sample.add_argument("--out", required=True, metavar="FILE", help="sheet to fill in")
    sample.set_defaults(run=run_sample)
    agree = verbs.add_parser("agreement", help="how often machine and person classify alike")
    agree.add_argument("--index", required=True, metavar="INDEX")
    agree.add_argument("--json", action="store_true")
    agree.set_defaults(run=run_agreement)


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


# --- changes between two versions ---------------------------------------------------------------------------------


def run_diff(args: argparse.Namespace) -> int:
    changes = Changes.between(take(args.old), take(args.new))
    if args.out:
        changes.write(Path(args.out))
    if args.json:
        print(json.dumps(dataclasses.asdict(changes)))
        return 0
    print(f"torch {changes.old} → {changes.new}")
    print(f"  {'':16}{'added':>8}{'removed':>8}{'changed':>8}")
    for name, part in changes.parts.items():
        print(f"  {name:16}{len(part.added):8}{len(part.removed):8}{len(part.changed):8}")
    operators = common.load_operators()
    families = Counter(operators.family_of_aten(name) for name in changes.packets)
    print(f"{len(changes.packets)} operators are new or implemented otherwise; by family:")
    print("  " + ", ".join(f"{name} {count}" for name, count in families.most_common()))
    for name in ("schemas", "lowerings", "decompositions", "fallbacks"):
        _show_part(name, changes.parts[name])
    print("files changed, by folder: " + ", ".join(f"{name} {count}" for name, count in by_folder(changes.files.here)))
    print("functions changed, by file:")
    counts = Counter(name.partition(":")[0] for name in changes.functions.here)
    for name, count in counts.most_common(_FILES_SHOWN):
        print(f"  {count:5} {name}")
    return 0


def _show_part(name: str, part: Part) -> None:
    for word in ("added", "removed", "changed"):
        names = getattr(part, word)
        if names:
            rest = f" and {len(names) - _NAMES_SHOWN} more (--json)" if len(names) > _NAMES_SHOWN else ""
            print(f"{name} {word}: {', '.join(names[:_NAMES_SHOWN])}{rest}")


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
    told, code = llm_issues.read(args, issues) if args.llm else ({}, 0)
    if args.json:
        print(json.dumps({"imported": count, "faults": faults, **counts, **told}))
        return code
    for line in faults:
        print(printable(line), file=sys.stderr)
    print(f"{count} issues → {args.out}")
    for column, found in counts.items():
        print(f"  by {column}: " + ", ".join(f"{name} {number}" for name, number in found.items()))
    return code


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
    single = (args.number, args.task, args.cause)
    given = sum(value is not None for value in single)
    if given != (0 if args.sheet else len(single)):
        raise UserError("verify: give NUMBER --task TASK --cause CAUSE, or --from FILE alone")
    filled = read_sheet(Path(args.sheet)) if args.sheet else [single]
    with IssueIndex(Path(args.index)) as index:
        for number, task, cause in filled:
            index.verify(number, task, cause)
        shares = index.agreement()
    if args.json:
        print(json.dumps(shares))
    else:
        print(
            f"{shares['verified']} verified by a person; the rules agree on {shares['task']:.0%} of the tasks "
            f"and {shares['cause']:.0%} of the causes"
        )
    return 0


def run_sample(args: argparse.Namespace) -> int:
    with IssueIndex(Path(args.index)) as index:
        issues = index.sample(args.count, args.seed)
        if not issues:
            raise UserError(f"{args.index}: every issue is classified by a person already; import more")
        try:
            atomic.write_text(Path(args.out), sheet(issues))
        except OSError as error:
            raise UserError(f"{args.out}: cannot be written ({error.strerror}); choose another path") from None
    then = f"eddy knowledge verify --index {args.index} --from {args.out}"
    print(f"{len(issues)} issues → {args.out}; fill it in, then: {then}")
    return 0


def run_agreement(args: argparse.Namespace) -> int:
    with IssueIndex(Path(args.index)) as index:
        drawn, everything = agreement(index.judged(sampled=True)), agreement(index.judged())
    if args.json:
        print(json.dumps({"sampled": drawn, "all": everything}))
        return 0
    for name, found in (("drawn at random", drawn), ("all", everything)):
        print(f"{name}: {found['issues']} issues classified by a person")
        for column in ("task", "cause") if found["issues"] else ():
            told = found[column]
            print(f"  {column:6} {told['agree']:.0%} alike, kappa {told['kappa']:.2f}")
            for machine, person, times in told["confused"][:5]:
                print(f"    {times}× the rules say {machine}, the person {person}")
    return 0
