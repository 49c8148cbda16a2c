"""Do the rules class real bugs as their reports do, and does the search find a bug's own issue?

    python -m benchmarks.classification [--torch PYTHON]… [--keep DIR] [--issues DUMP]

Every case of the exam that fails on one of the given torches is run once, judged and located; what was seen is kept as
a ``finding.json`` a case in ``--keep``, and not run again. Told: the share whose symptom is the table's family; the
share whose task is one that the README's trigger family stands for (``TASKS_OF`` below: this file's reading, not the
reporters'); and, of the cases whose issue is in the dump, how many find it among the three nearest. Without a dump one
is made of the table's own titles and of the titles of bug patterns: the words of one author, so an upper bound.

The rules see the program, what ran and where it failed: never a case's id, title or issue.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import csv
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import save, table
from benchmarks.retrieval import own_families
from fuzzer import exam
from fuzzer.bisect import first_failing_backend
from fuzzer.classify import classify
from fuzzer.cli.common import scratch_folder
from fuzzer.examine import examine
from fuzzer.finding import Finding, State, essential_facts
from fuzzer.knowledge.issues import Issue, IssueIndex, read_issues
from fuzzer.knowledge.patterns import Pattern, load_patterns
from fuzzer.nearest import SHOWN, nearest
from fuzzer.program import Program
from fuzzer.triage import final_signature
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

EXAM = Path(__file__).parent.parent / "corpus" / "exam"

#: Trigger family of the exam's README → tasks of the front end that it may stand for.
TASKS_OF: Mapping[str, frozenset[str]] = {
    family: frozenset(tasks.split())
    for family, tasks in {
        "index_reduction": "memory_layout",
        "lost_checks": "attribute_handling",
        "dtype_without_kernel": "operator_mapping",
        "zero_dim": "shape_inference attribute_handling",
        "empty": "shape_inference attribute_handling",
        "constant_folding": "folding_precision",
        "algebraic_rewrite": "folding_precision",
        "integer_semantics": "code_generation",
        "mutation_order": "memory_layout",
        "backward": "operator_mapping folding_precision",
        "fake_strides": "shape_inference memory_layout",
        "pattern_match": "operator_mapping",
        "view_bounds": "memory_layout attribute_handling",
        "unrolling": "code_generation",
        "captured_scalar": "shape_inference control_flow code_generation",
        "accumulation": "folding_precision operator_mapping",
        "resampling": "folding_precision operator_mapping",
        "higher_order": "control_flow",
        "complex": "unsupported_operator operator_mapping",
        "autograd_metadata": "memory_layout shape_inference control_flow",
        "overlapping_write": "memory_layout",
        "scalar_argument": "attribute_handling shape_inference",
        "special_functions": "folding_precision operator_mapping",
        "random": "operator_mapping",
    }.items()
}


#: Symptoms that the exam itself counts as one: whether a refusal comes while compiling or while running.
_REFUSALS = frozenset({"compile_error", "extra_check"})


@dataclass(frozen=True)
class Case:
    """A case that failed here, as Eddy sees it, beside its row of the table."""

    row: Mapping[str, str]
    finding: Finding

    @property
    def issue(self) -> int:
        """Its number in the tracker; 0 where the table names none."""
        return int(self.row["issue"]) if self.row["issue"].isdecimal() else 0


async def observe(targets: Sequence[Target], keep: Path) -> list[Case]:
    """Cases that fail, each on the first of the targets that shows it; from ``keep`` where it was seen before."""
    with (EXAM / "table.csv").open(encoding="utf-8") as file:
        rows = {row["id"]: row for row in csv.DictReader(file) if row["confirmed"] == "yes"}
    keep.mkdir(parents=True, exist_ok=True)
    for target in targets:
        if all((keep / f"{name}.json").exists() for name in rows):
            break
        await _observe_on(target, keep, set(rows))
    return [
        Case(row, Finding.from_map(json.loads(path.read_text(encoding="utf-8"))))
        for name, row in rows.items()
        if (path := keep / f"{name}.json").exists()
    ]


async def _observe_on(target: Target, keep: Path, names: set[str]) -> None:
    with scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=()))
        try:
            torch = str((await worker.start())["target"]["torch"])
            for case in exam.load(EXAM, torch):
                path = keep / f"{case.id}.json"
                if case.id in names and case.fails and not path.exists():
                    finding = await _finding(worker, case)
                    if finding is None:
                        print(f"{case.id}: not flagged on {torch}", flush=True)
                    else:
                        path.write_text(json.dumps(finding.to_map()), encoding="utf-8")
        finally:
            await worker.stop()


async def _finding(worker: Worker, case: exam.Case) -> Finding | None:
    try:
        seen = await examine(worker, case.program)
        if not seen.verdict.is_suspect:
            return None
        backend = await first_failing_backend(worker, seen.program, seen.verdict)
    except WorkerLost:
        return None
    verdict = seen.verdict
    return Finding(
        final_signature(verdict, seen.observation, {}, seen.program),
        verdict.kind,
        bare(seen.program.text),
        stage=verdict.stage,
        reason=verdict.reason,
        debatable=verdict.debatable,
        state=State.SUSPECT,
        target=dict(worker.ready.get("target", {})),
        gates=verdict.gates,
        facts=essential_facts(seen.observation, verdict),
        triage={"backend": backend},
    )


#: Keys of META that say what a program does; the others of the exam's say what its report says.
_OF_THE_CONTRACT = frozenset({"mode", "random", "compile", "inductor_config", "dynamo_config", "no_grad"})


def bare(text: str) -> str:
    """The program without what META tells of the report: title, kind, operators, issue."""
    meta = Program.parse(text).meta
    kept = {key: item for key, item in meta.items() if key in _OF_THE_CONTRACT}
    for node in ast.parse(text).body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "META" for target in node.targets):
            lines = text.splitlines(keepends=True)
            lines[node.lineno - 1 : node.end_lineno] = [f"META = {kept!r}\n"]
            return "".join(lines)
    return text


def agreement(cases: Sequence[Case]) -> tuple[dict[str, Any], list[list[str]]]:
    """Figures, and a row for every case on which rules and table differ."""
    readme = own_families((EXAM / "README.md").read_text(encoding="utf-8"))
    right, tasks, judged = 0, 0, 0
    symptoms, causes, other = Counter[str](), Counter[str](), []
    for case in cases:
        found = classify(case.finding)
        symptoms[found.symptom.name] += 1
        causes[found.cause.name] += 1
        agrees = found.symptom.name == case.row["family"] or {found.symptom.name, case.row["family"]} <= _REFUSALS
        right += agrees
        wanted = frozenset[str]().union(*(TASKS_OF[family] for family in readme.get(case.row["id"], ())))
        if wanted:
            judged += 1
            tasks += found.task.name in wanted
        if not agrees or (wanted and found.task.name not in wanted):
            told = [case.row["id"], case.row["family"], found.symptom.name, case.finding.kind.value]
            other.append([*told, found.task.name, " ".join(sorted(wanted))])
    numbers = {
        "cases": len(cases),
        "symptom_agrees": right,
        "symptom_share": round(right / max(1, len(cases)), 3),
        "with_trigger_family": judged,
        "task_agrees": tasks,
        "task_share": round(tasks / max(1, judged), 3),
        "symptoms": dict(symptoms.most_common()),
        "causes": dict(causes.most_common()),
    }
    return numbers, other


def own_issue(cases: Sequence[Case], issues: Sequence[Issue]) -> tuple[dict[str, Any], list[list[str]]]:
    """Of the cases whose issue is among these: how many find it first, and among those shown."""
    numbers = {issue.number for issue in issues}
    asked = [case for case in cases if case.issue in numbers]
    first, shown, missed = 0, 0, []
    with tempfile.TemporaryDirectory() as scratch, IssueIndex(Path(scratch) / "issues.sqlite", create=True) as index:
        index.add(issues)
        for case in asked:
            found = [item["number"] for item in nearest(case.finding, index)]
            first += found[:1] == [case.issue]
            shown += case.issue in found
            if case.issue not in found:
                missed.append([case.row["id"], str(case.issue), " ".join(map(str, found))])
    figures = {
        "issues": len(issues),
        "distractors": len(issues) - len({case.issue for case in asked}),
        "cases": len(asked),
        "first": first,
        f"top_{SHOWN}": shown,
        "share": round(shown / max(1, len(asked)), 3),
    }
    return figures, missed


def issues_of_our_own() -> list[Issue]:
    """The table's titles, and those of the bug patterns, as if they were a tracker's."""
    titles: dict[int, list[str]] = {}
    with (EXAM / "table.csv").open(encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["issue"].isdecimal():
                titles.setdefault(int(row["issue"]), []).append(row["title"])
    for number, title in _pattern_titles():
        if number not in titles:
            titles[number] = [title]
    return [Issue(number, said[0], "\n".join(said[1:])) for number, said in sorted(titles.items())]


def _pattern_titles() -> Iterator[tuple[int, str]]:
    for entry in load_patterns().entries:
        if isinstance(entry, Pattern):
            yield from ((number, entry.title) for number in entry.issues)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.classification",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--torch", action="append", metavar="PYTHON", help="interpreter with torch (repeatable)")
    parser.add_argument("--keep", type=Path, default=Path("campaigns/classification"), metavar="DIR")
    parser.add_argument("--issues", type=Path, metavar="DUMP", help="issues of a tracker, as for import-issues")
    args = parser.parse_args(argv)
    pythons = args.torch or [sys.executable]
    cases = asyncio.run(observe([Target(python) for python in pythons], args.keep))
    if not cases:
        print("no case of the exam fails here")
        return 1
    numbers, other = agreement(cases)
    print(table([["case", "family", "symptom", "kind", "task", "expected task"], *other]))
    issues = read_issues(args.issues)[0] if args.issues else issues_of_our_own()
    figures, missed = own_issue(cases, issues)
    if missed:
        print(table([["case", "issue", "found instead"], *missed]))
    figures["dump"] = "a tracker's" if args.issues else "titles of our own"
    print(json.dumps({**numbers, "nearest": figures}, indent=1))
    save("classification", "python -m benchmarks.classification", {**numbers, "nearest": figures})
    return 0


if __name__ == "__main__":
    sys.exit(main())
