"""Which features do known bugs need? Each realised feature is switched off in turn, and the program is run.

    python -m benchmarks.essential [--torch PYTHON] [--most N] [--minutes M] [--report]

Takes the core cases of the exam that fail on this torch, those first that were not seen to fail on another. What was
answered is appended to a file of JSON lines at once and never asked again, so the measurement can be ended and taken up
at any time, with more features a case (``--most``) or another torch. ``--report`` only prints what the file says.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import json
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.results import FOLDER, save, table
from fuzzer.cli.common import scratch_folder
from fuzzer.essential import Ablation, StillFails, ablations
from fuzzer.exam import column_suffix
from fuzzer.examine import execute, settle
from fuzzer.features.detect import detect
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.program import Program
from fuzzer.reduce import SameFault
from fuzzer.verdict import Kind
from fuzzer.worker import Target, TargetRefused, Worker, WorkerLost, WorkerOptions

EXAM = Path(__file__).parent.parent / "corpus" / "exam"
RESULTS = FOLDER / "essential.jsonl"
#: A feature that was asked of so many bugs and needed by none says nothing.
_SILENT = 5
#: Features asked of every case before more are asked of any.
_FIRST = 3
_TOLD = {True: "free", False: "needed", None: "untold"}


@dataclass
class Case:
    """What is known of one bug. ``told``: feature → needed | free | untold."""

    id: str
    torch: str = ""  # on which it failed; "" where it was not seen to fail
    kind: str = ""
    features: tuple[str, ...] = ()
    removable: tuple[str, ...] = ()
    told: dict[str, str] = field(default_factory=dict)

    def those(self, word: str, operators: bool = True) -> list[str]:
        found = [name for name, told in self.told.items() if told == word]
        return sorted(name for name in found if operators or not name.startswith("op_family="))


def core_cases() -> list[dict[str, str]]:
    """Rows of the exam's table that are certainly bugs."""
    with (EXAM / "table.csv").open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["tier"] == "core"]


def read_results(path: Path) -> dict[str, Case]:
    """Case → what the lines say together; a torn last line is left out."""
    found: dict[str, Case] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue
        case = found.setdefault(record["case"], Case(record["case"]))
        if "features" in record:
            case.torch, case.kind = record["torch"], record["kind"]
            case.features, case.removable = tuple(record["features"]), tuple(record["removable"])
        elif "feature" in record:
            case.told[record["feature"]] = record["told"]
    return found


class Log:
    """The file of results."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)

    def add(self, **record: Any) -> None:
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")


async def measure(rows: Sequence[dict[str, str]], target: Target, log: Log, most: int, deadline: float) -> None:
    """Ask what is not answered yet, case by case: a few features of each first."""
    gone: set[str] = set()
    operators = Operators.load_extract()
    with scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), warm=False))
        ready = await worker.start()
        torch = str(ready["target"]["torch"])
        column = f"verdict_{column_suffix(torch, list(rows[0]))}" if rows else ""
        rows = [row for row in rows if row[column] not in ("pass", "timeout")]  # a hang costs minutes a question
        try:
            for row, count in [(row, count) for count in sorted({min(_FIRST, most), most}) for row in rows]:
                known = read_results(log.path).get(row["id"], Case(row["id"]))
                if time.monotonic() > deadline:
                    print("… out of time", flush=True)
                    return
                if row["id"] in gone or known.torch not in ("", torch) or _answered(known, count):
                    continue
                started = time.monotonic()
                try:
                    told = await _case(row, known, worker, operators, torch, log, count)
                except (WorkerLost, TargetRefused) as error:
                    told = f"harness error: {error}"
                    log.add(case=row["id"], torch=torch, note=told[:200])
                    await worker.revive()
                if told.startswith("left out"):
                    gone.add(row["id"])
                print(f"{row['id']} {told} ({time.monotonic() - started:.0f} s)", flush=True)
        finally:
            await worker.stop()


def _answered(case: Case, most: int) -> bool:
    return bool(case.features) and all(name in case.told for name in case.removable[:most])


async def _case(
    row: Mapping[str, str], known: Case, worker: Worker, operators: Operators, torch: str, log: Log, most: int
) -> str:
    path = EXAM / "cases" / row["file"]
    program = Program.parse(path.read_text(encoding="utf-8"), row["id"])
    seen, verdict = await execute(worker, program, coverage=False)
    program, seen, verdict = await settle(worker, program, seen, verdict)
    if not verdict.is_suspect or verdict.kind in (Kind.HANG, Kind.SLOW_COMPILE):
        return f"left out: {verdict.kind.value} on {torch}"
    features = sorted(detect(program, seen, operators.family_of_aten))
    removable = _in_order(ablations(program, features))
    if not known.features:
        names = [ablation.feature for ablation in removable]
        log.add(case=row["id"], torch=torch, kind=verdict.kind.value, features=features, removable=names)
    same = SameFault(worker, program, seen, verdict)
    asked, needed = StillFails(same, seen), []
    for ablation in removable[:most]:
        if ablation.feature in known.told:
            continue
        answer, executions = await ablation.answer(asked)
        log.add(case=row["id"], feature=ablation.feature, told=_TOLD[answer], executions=executions)
        needed += [ablation.feature] if answer is False else []
    return f"{verdict.kind.value}: needs {', '.join(needed) or 'none of those asked'}"


def _in_order(found: list[Ablation]) -> list[Ablation]:
    """What tells most, then the family of an operator, then the others."""
    operators = [item for item in found if item.feature.startswith("op_family=")]
    others = [item for item in found if item not in operators]
    return [*others[:1], *operators[:1], *others[1:], *operators[1:]]


def summary(cases: Iterable[Case], space: FeatureSpace) -> dict[str, Any]:
    """The figures. ``beyond_operators``: cases that need something else than the family of their operator."""
    measured = [case for case in cases if case.told]
    told: dict[str, Counter[str]] = defaultdict(Counter)
    for case in measured:
        for name, word in case.told.items():
            told[name][word] += 1
    silent = sorted(name for name, words in told.items() if words["needed"] == 0 and words["free"] >= _SILENT)
    return {
        "cases": len(measured),
        "with_essential": sum(bool(case.those("needed")) for case in measured),
        "beyond_operators": sum(bool(case.those("needed", operators=False)) for case in measured),
        "ablations": sum(len(case.told) for case in measured),
        "untold": sum(len(case.those("untold")) for case in measured),
        "never_needed": silent,
        "undescribed": sorted(case.id for case in measured if not case.those("needed")),
        "features_asked": len(told),
        "features": len(space.features),
        "needed_by": {
            name: words["needed"]
            for name, words in sorted(told.items(), key=lambda item: -item[1]["needed"])
            if words["needed"]
        },
    }


def show(cases: Mapping[str, Case], rows: Sequence[Mapping[str, str]]) -> None:
    head = ["case", "torch", "kind", "needs", "free", "untold"]
    lines = [
        [case.id, case.torch, case.kind, " ".join(case.those("needed")) or "-", len(case.those("free")),
         len(case.those("untold"))]
        for case in sorted(cases.values(), key=lambda item: item.id) if case.told
    ]  # fmt: skip
    if lines:
        print(table([head, *lines]))
    figures = summary(cases.values(), FeatureSpace.load())
    share = 100 * figures["with_essential"] / max(1, figures["cases"])
    print(
        f"\n{figures['cases']} of {len(rows)} core cases measured; {figures['with_essential']} ({share:.0f} %) need a "
        f"feature of the space, {figures['beyond_operators']} one beyond the family of an operator"
    )
    print(f"{figures['ablations']} ablations, {figures['untold']} of them could not be told")
    print(f"asked of {_SILENT} bugs or more, needed by none: {' '.join(figures['never_needed']) or '-'}")
    print(f"no feature describes: {' '.join(figures['undescribed']) or '-'}")
    print("needed by: " + ", ".join(f"{name} {count}" for name, count in figures["needed_by"].items()))


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--torch", default=sys.executable, metavar="PYTHON", help="interpreter with torch")
    parser.add_argument("--results", type=Path, default=RESULTS, metavar="FILE", help="answers, one a line")
    parser.add_argument("--most", type=int, default=8, metavar="N", help="features asked of one case")
    parser.add_argument("--minutes", type=float, default=30.0, help="begin no case after so many")
    parser.add_argument("--only", default="", metavar="ID[,ID]", help="these cases")
    parser.add_argument("--report", action="store_true", help="run nothing")
    args = parser.parse_args(argv)
    rows = core_cases()
    if not args.report:
        only = set(filter(None, args.only.split(",")))
        wanted = [row for row in rows if not only or row["id"] in only]
        known = read_results(args.results)
        wanted.sort(key=lambda row: bool(row["id"] in known and known[row["id"]].features))
        deadline = time.monotonic() + 60 * args.minutes
        asyncio.run(measure(wanted, Target(args.torch), Log(args.results), args.most, deadline))
    cases = read_results(args.results)
    show(cases, rows)
    if not args.report:
        save("essential", "python -m benchmarks.essential", summary(cases.values(), FeatureSpace.load()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
