import json
import re

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.finding import Finding, State
from fuzzer.labels import Label
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore
from fuzzer.verdict import Kind


@pytest.fixture
def directory(tmp_path):
    made = CampaignDirectory.create(tmp_path / "camp", {})
    store = FindingStore(made)
    for kind in (Kind.METADATA, Kind.CRASH, Kind.WRONG_GRADIENT):
        store.save(Finding(Signature(f"run|{kind.value}|x", ""), kind, "text", reason="why\x1b", state=State.CONFIRMED))
    return made


def label(directory, *words):
    return main(["triage", "label", str(directory.path), *words])


def test_findings_are_listed_by_severity_with_label_and_precision(directory, capsys):
    assert label(directory, "crash", "real", "--why", "two\nlines") == 0
    assert label(directory, "metadata", "duplicate-of", "--of", "crash") == 0
    assert label(directory, "run|wrong_gradient", "not-a-bug") == 0
    capsys.readouterr()
    assert main(["triage", "list", str(directory.path), "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert [(row["severity"], row["kind"], row["label"]) for row in listed["findings"]] == [
        ("high", "crash", "real"), ("high", "wrong_gradient", "not-a-bug"), ("medium", "metadata", "duplicate-of"),
    ]  # fmt: skip
    assert listed["findings"][0]["label_why"] == "two lines"
    assert listed["findings"][2]["label_of"].endswith("-crash")
    assert (listed["precision"]["part"], listed["precision"]["whole"]) == (2, 3)
    assert main(["triage", "list", str(directory.path)]) == 0
    text = capsys.readouterr().out
    assert re.search(r"high +confirmed +1× +\w{8}-crash +\[real\]\n.*\n +the same bug: \w{8}\n", text)
    assert "-metadata" not in text and "3 findings, 2 bugs (--all lists each" in text
    assert main(["triage", "list", str(directory.path), "--all"]) == 0
    text = capsys.readouterr().out
    assert re.search(r"medium +confirmed +1× +\w{8}-metadata +\[duplicate-of \w{8}-crash\]\n +same bug as", text)
    assert "precision 67 % (2 of 3 labelled" in text and "\x1b" not in text


def test_a_label_can_be_taken_back(directory):
    assert label(directory, "crash", "debatable") == 0
    assert LabelStore(directory).read().get("run|crash|x").label is Label.DEBATABLE
    assert label(directory, "crash", "none") == 0
    assert len(LabelStore(directory).read()) == 0


@pytest.mark.parametrize("words, expected", [
    (("nothing", "real"), "no finding 'nothing'"),
    (("run|", "real"), "fits 3 findings"),
    (("crash", "duplicate-of"), "--of ID"),
    (("crash", "real", "--of", "metadata"), "--of ID"),
    (("crash", "duplicate-of", "--of", "crash"), "duplicate of itself"),
    (("crash", "ignored"), "--why TEXT"),
])  # fmt: skip
def test_bad_labels_are_refused_with_a_line(directory, capsys, words, expected):
    assert label(directory, *words) == Exit.USAGE
    line = capsys.readouterr().err
    assert expected in line and line.count("\n") == 1
    assert not directory.labels.exists()


def test_a_name_that_begins_another_means_itself(directory):
    store = FindingStore(directory)
    name = store.folder(store.find("crash")).name
    (directory.findings / name).rename(directory.findings / "abc")
    (directory.findings / next(p.name for p in directory.findings.iterdir() if "metadata" in p.name)).rename(
        directory.findings / "abc-2"
    )
    assert label(directory, "abc", "real") == 0
    assert list(LabelStore(directory).read()) == ["run|crash|x"]


def test_no_campaign_is_said(tmp_path, capsys):
    assert main(["triage", "list", str(tmp_path)]) == Exit.DIRECTORY
    assert "not a campaign" in capsys.readouterr().err
