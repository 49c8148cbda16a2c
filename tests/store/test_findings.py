import json
import os
from dataclasses import replace

import pytest

from fuzzer.exits import UserError
from fuzzer.finding import TRANSITIONS, Finding, State, essential_facts
from fuzzer.observation import Observation
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import ALSO_KEPT, FindingStore
from fuzzer.verdict import Kind, Verdict

TEXT = "import torch\n\ndef fn(x):\n    return x.amin(1)\n\ndef build_inputs():\n    return (torch.ones(4, 40),)\n"


def finding(**changes):
    values = {
        "signature": Signature("run|wrong_value|amin", "out: 4 of 4 elements differ"),
        "kind": Kind.WRONG_VALUE,
        "text": TEXT,
        "stage": "run",
        "reason": "out: 4 of 4 elements differ",
        "target": {"torch": "2.13.0+cpu", "device": "cpu"},
        "gates": (("float64", "kept"),),
        "facts": {"operators": ["aten.amin.default"], "leaves": [{"path": "out", "max_abs": float("inf")}]},
    }
    return Finding(**{**values, **changes})


@pytest.fixture
def store(tmp_path):
    return FindingStore(CampaignDirectory.create(tmp_path / "campaign", {}))


def test_a_saved_finding_is_complete_and_reads_back(store):
    one = finding(parents=("abc",), confirmations=2, attempts=3, state=State.CONFIRMED)
    folder = store.save(one, logs=["first log", "second log"])
    assert folder == store.directory.findings / f"{one.sig8}-wrong-value-amin"
    assert sorted(os.listdir(folder)) == ["finding.json", "log-0.txt", "log-1.txt", "report.md", "repro.py"]
    assert (folder / "repro.py").read_text().startswith(TEXT)
    json.loads((folder / "finding.json").read_text(), parse_constant=pytest.fail)  # no NaN, no Infinity
    [back] = FindingStore(store.directory).load_all()
    assert back == replace(one, facts={**one.facts, "leaves": [{"path": "out", "max_abs": "inf"}]})


def test_states_move_the_folder_and_keep_its_logs(store):
    one = finding()
    store.save(one, logs=["log"])
    flaky = one.moved(State.FLAKY)
    folder = store.save(flaky)
    assert folder.parent == store.directory.flaky
    assert (folder / "log-0.txt").read_text() == "log"
    assert list(store.directory.findings.iterdir()) == []
    confirmed = replace(flaky.moved(State.CONFIRMED), reduced=TEXT.replace("40", "20"))
    folder = store.save(confirmed)
    assert folder.parent == store.directory.findings
    assert "torch.ones(4, 20)" in (folder / "reduced.py").read_text()
    assert [item.state for item in FindingStore(store.directory).load_all()] == [State.CONFIRMED]


def test_hangs_lie_apart(store):
    assert store.save(finding(kind=Kind.HANG)).parent == store.directory.hangs


def test_duplicates_are_counted_and_a_few_are_kept(store):
    one = finding()
    folder = store.save(one)
    for number in (1, 1, 2, 3, 4, 5):
        last = store.add_duplicate(one.signature.major, TEXT + f"# {number}\n")
    store.add_duplicate(one.signature.major, TEXT)
    assert last.duplicates == 6
    assert len(os.listdir(folder / "also")) == ALSO_KEPT
    loaded = FindingStore(store.directory).get(one.signature.major)
    assert loaded is not None and loaded.duplicates == 7


def test_find_by_name_slug_or_path_and_says_what_is_wrong(store):
    one, two = finding(), finding(signature=Signature("run|wrong_value|amax", ""), facts={"operators": ["aten.amax"]})
    folder = store.save(one)
    store.save(two)
    for prefix in (one.sig8, one.sig8[:5], "wrong-value-amin", str(folder), str(folder / "repro.py")):
        assert store.find(prefix).signature == one.signature
    with pytest.raises(UserError, match="fits 2 findings"):
        store.find("wrong")
    with pytest.raises(UserError, match=r"no finding 'zzz'.*there are: "):
        store.find("zzz")


def test_other_bugs_with_the_same_eight_digits_get_folders_of_their_own(store, monkeypatch):
    monkeypatch.setattr(Signature, "sig8", property(lambda self: "01234567"))
    names = [store.save(finding(signature=Signature(major, ""))).name for major in ("one", "two")]
    assert names == ["01234567-wrong-value-amin", "01234567-wrong-value-amin-2"]


def test_a_damaged_finding_is_named_and_the_rest_loads(store):
    store.save(finding())
    bad = store.save(finding(signature=Signature("other", "")))
    (bad / "finding.json").write_text('{"format": 99}')
    again = FindingStore(store.directory)
    assert len(again) == 1
    assert str(bad) in again.warnings[0] and "newer Eddy" in again.warnings[0]


def test_an_interrupted_first_save_leaves_nothing(store, monkeypatch):
    def fail(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("fuzzer.store.findings.os.replace", fail)
    with pytest.raises(OSError):
        store.save(finding())
    assert os.listdir(store.directory.findings) == []


@pytest.mark.parametrize("start", State)
def test_only_allowed_moves_are_made(start):
    one = finding(state=start, known_issue="pytorch#1", note="why")
    for target in State:
        if target is start or target in TRANSITIONS[start] or target in (State.KNOWN, State.IGNORED):
            assert one.moved(target, known_issue="pytorch#1", note="why").state is target
        else:
            with pytest.raises(ValueError, match=f"cannot go from {start.value} to {target.value}"):
                one.moved(target)


@pytest.mark.parametrize("changes", [
    {"kind": Kind.PASS}, {"confirmations": 2, "attempts": 1}, {"state": State.KNOWN}, {"state": State.IGNORED},
])  # fmt: skip
def test_a_finding_checks_itself(changes):
    with pytest.raises(ValueError):
        finding(**changes)


def test_essential_facts_put_the_guilty_leaf_first():
    leaves = [{"path": "out[0]", "differing": 9, "nan_mismatch": 9}, {"path": "out[1]", "differing": 1}]
    seen = Observation.from_map(
        {"leaves": leaves, "second_leaves": leaves[1:], "log": "x" * 9000,
         "stages": [{"name": "eager", "fault": {"type": "ValueError", "message": "no"}}]}
    )  # fmt: skip
    facts = essential_facts(seen, Verdict(Kind.WRONG_VALUE, "second", details={"leaf": leaves[1]}))
    assert facts["leaves"][0] == {"path": "out[1]", "differing": 1, "second": True}
    assert essential_facts(seen)["leaves"][0]["path"] == "out[0]"
    assert facts["faults"]["eager"]["message"] == "no"
    assert len(facts["log"]) < 5000
