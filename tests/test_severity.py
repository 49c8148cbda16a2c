import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.finding import Finding, State
from fuzzer.severity import Rank, by_severity, severity, unusual_numbers
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

PROGRAM = "import torch\n\ndef build_inputs():\n    return (torch.randn(4),)\n\ndef fn(x):\n    return x.sum()\n"
LEAF = {"path": "out", "worst": [{"index": [0], "eager": 1.5, "compiled": -2.5, "reference": 1.5}]}
FAULTS = [kind for kind in Kind if kind.is_fault]


def finding(kind=Kind.WRONG_VALUE, text=PROGRAM, leaf=LEAF, **changes):
    facts = {"leaves": [leaf] if leaf else [], "end": {}}
    return Finding(
        Signature(f"run|{kind.value}", ""), kind, text, **{"facts": facts, "state": State.CONFIRMED, **changes}
    )


def test_the_order_is_the_one_a_person_would_agree_with():
    worst_first = [
        finding(),
        finding(Kind.CRASH),
        finding(Kind.WRONG_GRADIENT),
        finding(leaf={**LEAF, "nan_mismatch": 3}),
        finding(Kind.MISSING_CHECK),
        finding(Kind.METADATA),
        finding(Kind.COMPILE_ERROR),
        finding(Kind.HANG),
        finding(Kind.EAGER_CRASH),
        finding(debatable="sign of zero"),
        finding(Kind.CRASH, state=State.KNOWN, known_issue="pytorch#1"),
        finding(state=State.FLAKY, confirmations=1, attempts=3),
        finding(Kind.CRASH, state=State.IGNORED, note="not ours"),
    ]
    assert [severity(item).rank for item in worst_first] == [int(rank) for rank in Rank]
    assert by_severity(reversed(worst_first)) == worst_first


@given(st.sampled_from(FAULTS), st.sampled_from(State), st.sampled_from(["", "cast elision"]))
def test_every_finding_has_a_rank_a_word_and_one_line(kind, state, debatable):
    item = finding(kind, state=state, debatable=debatable, known_issue="#1", note="two\nlines")
    found = severity(item)
    assert found.rank in Rank.__members__.values()
    assert found.word in ("critical", "high", "medium", "low", "aside")
    assert found.reason and "\n" not in found.reason
    assert (found.word == "aside") == (
        bool(debatable) or state in (State.KNOWN, State.FLAKY, State.IGNORED, State.FIXED)
    )


@pytest.mark.parametrize("line, word", [
    ("torch.randn(4) * 1e-40", "denormal"),
    ("torch.full((4,), float('nan'))", "NaN"),
    ("torch.full((4,), torch.inf)", "infinities"),
    ("torch.full((4,), -float('inf'))", "infinities"),
    ("torch.full((4,), torch.finfo(torch.float32).max)", "extremes"),
    ("torch.tensor([2**31, 9223372036854775807])", "integer extremes"),
    ("torch.empty(4)", "uninitialised"),
    ("x.new_empty(4)", "uninitialised"),
])  # fmt: skip
def test_unusual_numbers_that_a_program_writes_out_are_seen(line, word):
    item = finding(text=PROGRAM.replace("torch.randn(4)", line))
    assert word in unusual_numbers(item)
    assert severity(item).rank == Rank.UNUSUAL


@pytest.mark.parametrize("line", ["torch.empty(4).normal_()", "torch.randn(4) * 1e-3", "torch.randn(4)[..., 1:5]"])
def test_ordinary_numbers_are_not_taken_for_unusual(line):
    assert unusual_numbers(finding(text=PROGRAM.replace("torch.randn(4)", line))) == ""


@pytest.mark.parametrize(
    "side, value", [("compiled", "nan"), ("eager", "-inf"), ("reference", 3e38), ("compiled", 1e-42)]
)
def test_unusual_elements_are_seen(side, value):
    leaf = {**LEAF, "worst": [{"index": [0], "eager": 1.0, "compiled": 2.0, "reference": 1.0, side: value}]}
    assert "in the result" in unusual_numbers(finding(leaf=leaf))


def test_a_reduced_program_is_judged_by_what_is_left_of_it():
    asked = 'META = {"features": ["values=nan"]}\n' + PROGRAM
    assert unusual_numbers(finding(text=asked)) == "asked for values=nan"
    assert unusual_numbers(finding(text=asked, reduced=PROGRAM)) == ""


def test_state_left_behind_is_no_wrong_value():
    assert severity(finding(leaf=None)).rank == Rank.METADATA


def test_eager_at_fault_is_said():
    assert severity(finding(stage="eager")).rank == Rank.EAGER


def test_within_a_rank_what_same_rejects_comes_first_then_what_is_common():
    rejected = finding(leaf={**LEAF, "same": False})
    common, rare = finding(duplicates=9), finding(duplicates=1)
    assert by_severity([rare, common, rejected]) == [rejected, common, rare]


def test_text_that_is_no_python_is_ordinary():
    assert unusual_numbers(finding(text="def (")) == ""
