"""The exam: reading tables, and what counts as agreement. The judge itself is measured by ``test_exam_torch``."""

from pathlib import Path

import pytest

from fuzzer.exam import Answer, Case, column_suffix, load, same_kind, summary
from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict

TEXT = "import torch\n\n\ndef build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a\n"


def folder(tmp_path: Path, table: str) -> Path:
    (tmp_path / "table.csv").write_text(table)
    (tmp_path / "one.py").write_text(TEXT)
    return tmp_path


def answer(expected: str, kind: Kind, tier: str = "core", debatable: str = "", stage: str = "") -> Answer:
    case = Case("e1", Program.parse(TEXT), expected, "inductor", tier, "")
    return Answer(case, Verdict(kind, debatable=debatable), stage, 1.0)


@pytest.mark.parametrize(
    ("expected", "kind"),
    [
        ("wrong_value", Kind.WRONG_VALUE),
        ("gradient", Kind.WRONG_GRADIENT),
        ("timeout", Kind.SLOW_COMPILE),
        ("crash_SIGSEGV", Kind.CRASH),
        ("eager_crash_SIGABRT", Kind.EAGER_CRASH),
        ("compile_error", Kind.EXTRA_CHECK),
        ("missing_check", Kind.MISSING_CHECK),
    ],
)
def test_the_tables_words_name_our_kinds(expected: str, kind: Kind) -> None:
    assert same_kind(expected, kind)
    assert not same_kind(expected, Kind.METADATA)


def test_the_column_of_a_torch_version_is_found() -> None:
    columns = ["verdict_251", "verdict_213"]
    assert column_suffix("2.13.0+cpu", columns) == "213"
    assert column_suffix("2.5.1", columns) == "251"
    with pytest.raises(UserError, match=r"2\.9\.0"):
        column_suffix("2.9.0", columns)


def test_agreement_wants_the_class_of_debatable_cases_too() -> None:
    assert answer("wrong_value", Kind.WRONG_VALUE).agrees
    assert not answer("wrong_value", Kind.PASS).agrees
    assert not answer("wrong_value", Kind.WRONG_VALUE, tier="debatable").agrees
    assert answer("wrong_value", Kind.WRONG_VALUE, tier="debatable", debatable="cast elision").agrees
    assert answer("pass", Kind.PASS, tier="").agrees
    assert not answer("pass", Kind.CRASH, tier="").agrees


def test_the_summary_counts_false_alarms_apart() -> None:
    figures = summary([
        answer("wrong_value", Kind.WRONG_VALUE, stage="inductor"),
        answer("crash_SIGFPE", Kind.WRONG_VALUE, stage="decomp"),
        answer("pass", Kind.HANG, tier=""),
        answer("pass", Kind.PASS, tier=""),
    ])  # fmt: skip
    assert (figures["failing"], figures["flagged"], figures["right_kind"]) == (2, 2, 1)
    assert (figures["controls"], figures["controls_flagged"]) == (2, 1)
    assert (figures["stages"], figures["stages_right"]) == (2, 1)


def test_cases_are_read_for_the_torch_that_runs(tmp_path: Path) -> None:
    table = "id,file,verdict_251,verdict_213,stage_213,tier\ne1,one.py,pass,crash_SIGSEGV,inductor,core\n"
    case = load(folder(tmp_path, table), "2.13.0+cpu")[0]
    assert (case.expected, case.expected_stage, case.fails) == ("crash_SIGSEGV", "inductor", True)
    assert not load(folder(tmp_path, table), "2.5.1")[0].fails


@pytest.mark.parametrize(
    ("table", "named"),
    [("id,file,verdict_213\ne1,gone.py,pass\n", "gone.py"), ("id,name\ne1,x\n", "file"), ("", "file")],
)
def test_a_bad_table_is_named_in_one_line(tmp_path: Path, table: str, named: str) -> None:
    with pytest.raises(UserError, match=named):
        load(folder(tmp_path, table), "2.13.0")


def test_a_folder_without_a_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"table\.csv"):
        load(tmp_path, "2.13.0")
