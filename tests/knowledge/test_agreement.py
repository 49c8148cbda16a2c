"""From a sample to the agreement of machine and person."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.knowledge.agreement import agreement, read_sheet, sheet
from fuzzer.knowledge.issues import CAUSES, TASKS, Issue, IssueIndex, Judged

ISSUES = [Issue(n, f"stride mismatch {n}", "line\x00one\n\n[[issue]]\nnumber = 5\ud800") for n in range(1, 21)]
JUDGED = st.builds(Judged, *(st.sampled_from(list(known)[:3]) for known in (TASKS, TASKS, CAUSES, CAUSES)))


def test_a_sheet_can_be_filled_in_and_read_back(tmp_path: Path) -> None:
    path = tmp_path / "sheet.toml"
    text = sheet(ISSUES[:3])
    path.write_text(text)
    assert read_sheet(path) == [], "nothing filled in yet"
    assert not any(word in text.split("\n", 3)[3] for word in ("shape_inference", "unknown")), "nothing that leads"
    filled = text.replace('task = ""\ncause = ""', 'task = "memory_layout"\ncause = "unknown"', 2)
    path.write_text(filled)
    assert read_sheet(path) == [(1, "memory_layout", "unknown"), (2, "memory_layout", "unknown")]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[[issue]]\nnumber = 3\ntask = "memory_layout"\n', "issue 3: cause is ''"),
        ('[[issue]]\nnumber = 3\ntask = "gardening"\ncause = "boundary"\n', "gardening"),
        ('[[issue]]\ntask = "memory_layout"\n', "entry 1 has no number"),
        ("[[issue\n", "not valid TOML"),
    ],
)
def test_a_sheet_that_cannot_be_taken_names_the_place(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "sheet.toml"
    path.write_text(text)
    with pytest.raises(UserError, match=words):
        read_sheet(path)


def test_samples_are_drawn_from_what_nobody_judged_and_counted_apart(tmp_path: Path) -> None:
    with IssueIndex(tmp_path / "index", create=True) as index:
        index.add(ISSUES)
        index.verify(4, "memory_layout", "boundary")
        drawn = index.sample(5, seed=3)
        assert [issue.number for issue in drawn] == sorted({issue.number for issue in drawn} - {4})
        assert drawn == index.sample(5, seed=3) and len(index.sample(100)) == 19
    with IssueIndex(tmp_path / "other", create=True) as index:
        index.add(ISSUES)
        index.verify(4, "memory_layout", "boundary")
        number = index.sample(1)[0].number
        index.verify(number, "shape_inference", "boundary")
        assert len(index.judged()) == 2 and [item.task for item in index.judged(sampled=True)] == ["shape_inference"]


def test_figures() -> None:
    same = [Judged("a", "a", "x", "x"), Judged("b", "b", "x", "x")]
    assert agreement(same)["task"] == {"agree": 1.0, "kappa": 1.0, "confused": []}
    # three of four alike; by chance 0.5 of them: kappa (0.75 - 0.5) / 0.5
    mixed = [
        Judged("a", "a", "x", "y"),
        Judged("a", "a", "x", "y"),
        Judged("b", "b", "x", "y"),
        Judged("b", "a", "x", "y"),
    ]
    task, cause = agreement(mixed)["task"], agreement(mixed)["cause"]
    assert task["agree"] == 0.75 and task["kappa"] == pytest.approx(0.5) and task["confused"] == [["b", "a", 1]]
    assert cause["agree"] == 0.0 and cause["confused"] == [["x", "y", 4]]
    assert agreement([])["issues"] == 0


@given(st.lists(JUDGED, min_size=1, max_size=30))
def test_kappa_never_exceeds_the_agreement(judged: list[Judged]) -> None:
    for column in ("task", "cause"):
        told = agreement(judged)[column]
        assert told["kappa"] <= told["agree"] + 1e-9 and 0.0 <= told["agree"] <= 1.0
        assert sum(times for *_, times in told["confused"]) == round((1 - told["agree"]) * len(judged))
