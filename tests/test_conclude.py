"""What triage notes of all findings together, on a directory without any target."""

import pytest

from fuzzer.conclude import conclude
from fuzzer.finding import Finding, State
from fuzzer.grouping import Decisions
from fuzzer.knowledge.issues import Issue, IssueIndex
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.groups import GroupStore
from fuzzer.verdict import Kind

TEXT = """import torch

META = {}


def build_inputs():
    return (torch.ones(3),)


def fn(a):
    return a.relu()
"""
FAULT = {
    "type": "RuntimeError",
    "cause_type": "RuntimeError",
    "message": "no relu here",
    "frames": ["torch/a.py:lower"],
}


@pytest.fixture
def directory(tmp_path):
    made = CampaignDirectory.create(tmp_path / "camp", {"seed": 1})
    made.start()
    return made


def found(major, kind=Kind.WRONG_VALUE, state=State.CONFIRMED, **facts):
    facts = {"operators": ["aten.relu.default"], **facts}
    return Finding(Signature(major, "relu is off"), kind, TEXT, state=state, stage="run", facts=facts)


def told(directory, *findings):
    for finding in findings:
        FindingStore(directory).save(finding)
    warnings = []
    conclude(directory, FindingStore(directory), directory.issues, warnings.append)
    return {item.signature.major: item for item in FindingStore(directory).load_all()}, warnings


def test_findings_are_classed_and_grouped(directory):
    after, warnings = told(
        directory,
        found("a"),
        found("b"),
        found("c", Kind.COMPILE_ERROR, faults={"run": FAULT}),
        found("d", state=State.FLAKY),
    )
    assert after["c"].triage["class"]["symptom"] == "compile_error" and after["c"].triage["group"] == []
    assert [name.split("-")[0] for name in after["a"].triage["group"]] == [after["b"].sig8]
    assert "group" not in after["d"].triage and not warnings
    GroupStore(directory).change(lambda decisions: Decisions.alone(decisions, "a"))
    after, _ = told(directory)
    assert after["a"].triage["group"] == [] and after["b"].triage["group"] == []


def test_imported_issues_are_compared_while_there_is_an_index(directory):
    with IssueIndex(directory.issues, create=True) as index:
        index.add([Issue(7, "relu is wrong under compile"), Issue(8, "something else altogether")])
    after, _ = told(directory, found("a"))
    assert after["a"].triage["similar"][0]["number"] == 7
    text = (FindingStore(directory).folder(after["a"]) / "report.md").read_text()
    assert "pytorch/issues/7" in text and "Class (unverified, by rules): symptom" in text
    directory.issues.unlink()
    after, _ = told(directory)
    assert "similar" not in after["a"].triage


def test_an_index_that_cannot_be_read_is_told(directory):
    directory.issues.write_text("not a database, " * 100)
    after, warnings = told(directory, found("a"))
    assert len(warnings) == 1 and "no index of issues" in warnings[0] and after["a"].triage["group"] == []
