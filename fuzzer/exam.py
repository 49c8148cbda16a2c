"""The exam: programs from real bug reports with what each torch version does; measures the judge.

A folder with ``table.csv`` and the programs it names (in the folder or under ``cases/``). For every torch version
that was measured the table has a column ``verdict_XYZ`` (``pass``, or the failure) and ``stage_XYZ`` (first failing
backend).
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.program import Program, ProgramError
from fuzzer.verdict import Kind, Verdict

#: Words of the table that name the same fault as one of ours, and kinds that count as the same.
_SAME_KIND: dict[str, frozenset[str]] = {
    "timeout": frozenset({"hang", "slow_compile"}),
    "gradient": frozenset({"wrong_gradient"}),
    "compile_error": frozenset({"compile_error", "extra_check"}),
    "eager_missing_check": frozenset({"missing_check"}),
    "eager_overflow": frozenset({"missing_check", "eager_crash"}),
    "eager_wrong": frozenset({"wrong_value"}),
    "mutation": frozenset({"wrong_mutation", "wrong_value"}),
    "wrong_value": frozenset({"wrong_value", "wrong_mutation"}),
}


@dataclass(frozen=True)
class Case:
    """One row of the table, for one torch version. ``expected`` is ``pass`` or the table's word for the failure."""

    id: str
    program: Program
    expected: str
    expected_stage: str
    tier: str
    kind: str

    @property
    def fails(self) -> bool:
        return self.expected != "pass"

    @property
    def debatable(self) -> bool:
        return self.tier == "debatable"


@dataclass(frozen=True)
class Answer:
    """What the judge said of a case."""

    case: Case
    verdict: Verdict
    stage: str  # first failing backend, empty where it was not bisected
    seconds: float

    @property
    def flagged(self) -> bool:
        return self.verdict.is_suspect

    @property
    def right_kind(self) -> bool:
        return same_kind(self.case.expected, self.verdict.kind)

    @property
    def agrees(self) -> bool:
        """Flagged exactly where the table says so, and a debatable difference put into its class."""
        classed = not self.case.fails or bool(self.verdict.debatable) is self.case.debatable
        return self.flagged is self.case.fails and classed

    @property
    def wrong_stage(self) -> bool:
        return bool(self.stage) and self.stage != self.case.expected_stage

    @property
    def differs(self) -> bool:
        """Does anything differ from the table: flagged or not, kind, class, stage?"""
        wrong_kind = self.case.fails and self.flagged and not self.right_kind
        return not self.agrees or wrong_kind or self.wrong_stage

    def row(self) -> dict[str, Any]:
        return {
            "id": self.case.id,
            "expected": self.case.expected,
            "seen": self.verdict.kind.value,
            "agrees": self.agrees,
            "right_kind": self.right_kind,
            "tier": self.case.tier,
            "debatable": self.verdict.debatable,
            "expected_stage": self.case.expected_stage,
            "stage": self.stage,
            "reason": self.verdict.reason,
            "gates": [list(gate) for gate in self.verdict.gates],
            "seconds": round(self.seconds, 2),
        }


def same_kind(expected: str, seen: Kind) -> bool:
    """Does the table's word name this kind? ``crash_SIGSEGV`` is a ``crash``."""
    if expected in _SAME_KIND:
        return seen.value in _SAME_KIND[expected]
    return re.sub(r"_SIG\w+$", "", expected) == seen.value


def load(folder: Path, torch_version: str, only: set[str] | None = None) -> list[Case]:
    """The cases of a folder, for the torch that will run them.

    Raises:
        UserError: no table, no column for this torch, a program missing; one line with the remedy.
    """
    table = folder / "table.csv"
    try:
        with table.open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
    except OSError as error:
        raise UserError(f"{table}: cannot be read ({error.strerror}); an exam is a folder with a table.csv") from None
    if not rows or "file" not in rows[0]:
        raise UserError(f"{table}: no column `file`; the first line names the columns")
    suffix = column_suffix(torch_version, list(rows[0]))
    cases = []
    for row in rows:
        name = row.get("id") or row["file"]
        if only and name not in only:
            continue
        path = folder / "cases" / row["file"]
        path = path if path.exists() else folder / row["file"]
        try:
            program = Program.parse(path.read_text(encoding="utf-8"), row["file"])
        except OSError:
            raise UserError(f"{table}: {name} names {row['file']}, which is not there") from None
        except ProgramError as error:
            raise UserError(f"{table}: {name}: {error}") from None
        verdict, stage = row.get(f"verdict_{suffix}", ""), row.get(f"stage_{suffix}", "")
        cases.append(Case(name, program, verdict or "pass", stage or "", row.get("tier", ""), row.get("kind", "")))
    return cases


def column_suffix(torch_version: str, columns: list[str]) -> str:
    """``2.13.0+cpu`` → ``213`` or ``2130``, whichever the table has."""
    numbers = re.findall(r"\d+", torch_version.split("+")[0])
    tried = ["".join(numbers[:3]), "".join(numbers[:2])]
    for suffix in tried:
        if f"verdict_{suffix}" in columns:
            return suffix
    measured = [name.removeprefix("verdict_") for name in columns if name.startswith("verdict_")]
    raise UserError(f"the table has no column for torch {torch_version}; it has {', '.join(measured) or 'none'}")


def summary(answers: list[Answer]) -> dict[str, Any]:
    """The figures of one run."""
    failing = [answer for answer in answers if answer.case.fails]
    controls = [answer for answer in answers if not answer.case.fails]
    staged = [answer for answer in failing if answer.stage and answer.case.expected_stage]
    return {
        "rows": [answer.row() for answer in answers],
        "failing": len(failing),
        "flagged": sum(answer.flagged for answer in failing),
        "right_kind": sum(answer.flagged and answer.right_kind for answer in failing),
        "debatable": sum(answer.case.debatable for answer in failing),
        "debatable_classed": sum(answer.case.debatable and bool(answer.verdict.debatable) for answer in failing),
        "stages": len(staged),
        "stages_right": sum(answer.stage == answer.case.expected_stage for answer in staged),
        "controls": len(controls),
        "controls_flagged": sum(answer.flagged for answer in controls),
    }
