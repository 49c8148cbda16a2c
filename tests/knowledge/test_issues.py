"""Imported issues: reading dumps, classes, the index, agreement with a person."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.knowledge.issues import Issue, IssueIndex, classify, read_issues

STRIDES = Issue(7, "stride mismatch of channels_last meta kernel", "fake tensor shape", ("module: inductor",), "open")


def test_json_lines_with_labels_of_either_form(tmp_path: Path) -> None:
    dump = tmp_path / "dump.jsonl"
    lines = [
        json.dumps(
            {"number": 1, "title": "one", "body": None, "labels": [{"name": "a"}, {"name": "b"}], "state": "open"}
        ),
        json.dumps({"number": 2, "title": "two", "labels": ["c"]}),
        "",
        json.dumps({"title": "no number"}),
        '{"number": ',
    ]
    dump.write_text("\n".join(lines))
    issues, faults = read_issues(dump)
    assert issues == [Issue(1, "one", "", ("a", "b"), "open"), Issue(2, "two", "", ("c",))]
    assert [fault.partition(": ")[0] for fault in faults] == [f"{dump}:4", f"{dump}:5"]


def test_markdown_headings_with_numbers(tmp_path: Path) -> None:
    dump = tmp_path / "dump.md"
    dump.write_text("# Tracker\n\n## argmax is wrong #12\nLabels: bug, inductor\nbody\n\n## #13: empty cat\nmore\n")
    issues, faults = read_issues(dump)
    assert not faults and [(issue.number, issue.title) for issue in issues] == [
        (12, "argmax is wrong"),
        (13, "empty cat"),
    ]
    assert issues[0].labels == ("bug", "inductor") and "body" in issues[0].body and issues[1].body == "more"


@pytest.mark.parametrize(
    ("text", "message"), [("nothing here", "no issue in it"), ('{"a": 1}', "needs number and title")]
)
def test_a_dump_without_issues_is_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "dump").write_text(text)
    with pytest.raises(UserError, match=message):
        read_issues(tmp_path / "dump")


@pytest.mark.parametrize(
    ("title", "body", "task", "cause"),
    [
        (
            "input mutation lost through a view",
            "silently wrong after in-place clone",
            "memory_layout",
            "semantics_misaligned",
        ),
        (
            "C++ compile error in generated kernel",
            "regression, used to work in 2.4",
            "code_generation",
            "version_drift",
        ),
        ("graph break in loop drops side effects", "results differ", "control_flow", "semantics_misaligned"),
        ("stride mismatch in meta kernel", "empty tensor", "shape_inference", "semantics_misaligned"),
        ("a question", "how do I", "unknown", "unknown"),
    ],
)
def test_classes(title: str, body: str, task: str, cause: str) -> None:
    assert classify(Issue(1, title, body)) == (task, cause)


def test_what_looks_alike_is_found_and_a_persons_word_stays(tmp_path: Path) -> None:
    path = tmp_path / "index.sqlite"
    others = [Issue(number, f"title {number}", "unrelated words on a page") for number in range(100, 110)]
    with IssueIndex(path, create=True) as index:
        assert index.add([STRIDES, *others]) == 11
        index.verify(7, "memory_layout", "boundary")
    with IssueIndex(path) as index:
        index.add([STRIDES])  # imported again
        found = index.similar("AssertionError: expected stride (channels_last) mismatch")
        assert [(hit.number, hit.task, hit.human_verified) for hit in found] == [(7, "memory_layout", True)]
        assert index.agreement() == {"verified": 1, "task": 0.0, "cause": 0.0}
        index.verify(7, *classify(STRIDES))
        assert index.agreement() == {"verified": 1, "task": 1.0, "cause": 1.0}
        assert sum(index.counts()["task"].values()) == 11
        with pytest.raises(UserError, match="is no class"):
            index.verify(7, "gardening", "boundary")
        with pytest.raises(UserError, match="not in the index"):
            index.verify(8, "memory_layout", "boundary")


def test_a_missing_or_foreign_index_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no such index"):
        IssueIndex(tmp_path / "none")
    (tmp_path / "text").write_text("not a database, " * 100)
    with pytest.raises(UserError, match="no index of issues"):
        IssueIndex(tmp_path / "text")
