from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.finding import Finding, State
from fuzzer.recheck import Replay, version_key, with_replays
from fuzzer.signature import Signature
from fuzzer.verdict import Kind


def seen(torch, kind="pass", same=None, git="g2"):
    return Replay(torch, git, kind, "run", "why", "", kind == "wrong_value" if same is None else same, "2031-01-02")


FOUND = Finding(
    Signature("m", ""), Kind.WRONG_VALUE, "text", stage="run", state=State.CONFIRMED,
    target={"torch": "2.13.0+cpu", "git": "g1"},
)  # fmt: skip


@pytest.mark.parametrize("replays, state", [
    ([seen("2.14.0")], State.FIXED),
    ([seen("2.14.0"), seen("2.15.0.dev1", "wrong_value")], State.CONFIRMED),
    ([seen("2.15.0", "compile_error", same=False)], State.CONFIRMED),
    ([seen("2.15.0", "invalid")], State.CONFIRMED),
    ([seen("2.5.1")], State.CONFIRMED),  # an older release that passes: it broke since
    ([seen("2.13.0+cpu", git="g1")], State.CONFIRMED),  # the same build: not reproduced, not fixed
    ([], State.CONFIRMED),
])  # fmt: skip
def test_only_a_newer_build_that_passes_means_fixed(replays, state):
    assert with_replays(FOUND, replays).state is state


def test_what_is_fixed_can_come_back():
    fixed = with_replays(FOUND, [seen("2.14.0")])
    assert "2.14.0" in fixed.note
    assert with_replays(fixed, [seen("2.15.0", "wrong_value")]).state is State.CONFIRMED
    assert with_replays(fixed, [seen("2.15.0")]).state is State.FIXED


def test_a_persons_word_and_flaky_ones_stay():
    ignored = FOUND.moved(State.IGNORED, note="by design")
    assert with_replays(ignored, [seen("2.14.0")]).state is State.IGNORED
    flaky = replace(FOUND, state=State.FLAKY)
    assert with_replays(flaky, [seen("2.14.0")]).state is State.FLAKY


def test_evidence_adds_up_in_the_order_of_versions():
    finding = with_replays(FOUND, [seen("2.14.0", "wrong_value")])
    finding = with_replays(finding, [seen("2.5.1")])
    assert list(finding.triage["versions"].items()) == [("2.5.1", "pass"), ("2.14.0", "wrong_value")]
    assert finding.triage["replays"]["2.14.0"]["date"] == "2031-01-02"
    assert Replay(**finding.triage["replays"]["2.5.1"]) == seen("2.5.1")


def test_versions_are_ordered_as_people_do():
    ordered = ["2.5.1", "2.13.0.dev20310101", "2.13.0", "2.13.0+cpu", "2.13.1", "2.14.0a0+git1", "2.14.0rc1", "2.14.0"]
    assert sorted(ordered[::2] + ordered[1::2], key=version_key) == ordered


@given(st.text(max_size=12))
def test_any_text_has_a_place(text):
    assert version_key(text) == version_key(text)
    assert sorted([text, "2.1"], key=version_key)
