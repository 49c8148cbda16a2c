import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.finding import Finding, State
from fuzzer.labels import Judgement, Label, Labels, Share, agreement, automatic, precision, set_aside
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

REAL, NOT, DEBATABLE = Judgement(Label.REAL), Judgement(Label.NOT_A_BUG), Judgement(Label.DEBATABLE)


def finding(major="a", **changes):
    return Finding(Signature(major, ""), Kind.WRONG_VALUE, "text", **{"state": State.CONFIRMED, **changes})


def duplicate(of):
    return Judgement(Label.DUPLICATE_OF, of)


def test_labels_go_to_plain_data_and_back():
    labels = Labels().with_label("a", Judgement(Label.REAL, why="seen", at=5)).with_label("b", duplicate("a"))
    assert Labels.from_map(labels.to_map()) == labels
    assert labels.without("a").get("a") is None and labels.get("a").why == "seen"


@pytest.mark.parametrize("plain", [
    None, [], {}, {"format": 1}, {"format": 1, "labels": {"a": {"label": "nice", "at": 0}}},
    {"format": 99, "labels": {}}, {"format": 1, "labels": {"a": {"label": "real"}}},
    {"format": 1, "labels": {"a": {"label": "duplicate-of", "of": "a", "at": 0}}},
])  # fmt: skip
def test_what_is_no_labels_is_refused(plain):
    with pytest.raises(ValueError):
        Labels.from_map(plain)


@pytest.mark.parametrize("parts", [
    {"label": Label.DUPLICATE_OF}, {"label": Label.REAL, "of": "a"}, {"label": Label.IGNORED},
])  # fmt: skip
def test_a_judgement_is_whole(parts):
    with pytest.raises(ValueError):
        Judgement(**parts)


@given(st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from("abcd"))))
def test_chains_of_duplicates_always_end(pairs):
    labels = Labels()
    for major, of in pairs:
        try:
            labels = labels.with_label(major, duplicate(of))
        except ValueError:
            assert labels.without(major).original(of) == major
    for major in "abcd":
        end = labels.original(major)
        assert labels.get(end) is None and labels.truth(major) is None


def test_precision_counts_what_eddy_calls_bugs():
    findings = [finding("a"), finding("b"), finding("c"), finding("d"), finding("e"), finding("f")]
    findings += [finding("g", debatable="sign of zero"), finding("h", state=State.KNOWN, known_issue="#1")]
    labels = (
        Labels()
        .with_label("a", REAL)
        .with_label("b", duplicate("a"))  # of something real
        .with_label("c", NOT)
        .with_label("d", DEBATABLE)
        .with_label("e", duplicate("f"))  # of something nobody judged
        .with_label("g", NOT)  # Eddy did not call it a bug
        .with_label("h", REAL)
    )
    assert precision(findings, labels) == Share(3, 4)
    assert precision(findings, Labels()).value is None


def test_agreement_compares_a_person_with_eddy():
    findings = [finding("a"), finding("b", debatable="x"), finding("c"), finding("d", state=State.FLAKY), finding("e")]
    labels = Labels({"a": REAL, "b": DEBATABLE, "c": NOT, "d": NOT, "e": Judgement(Label.IGNORED, why="later")})
    assert [automatic(item) for item in findings] == ["bug", "debatable", "bug", "flaky", "bug"]
    assert agreement(findings, labels) == Share(3, 4)


@pytest.mark.parametrize("part, whole", [(0, 5), (5, 5), (3, 4), (70, 100)])
def test_the_interval_holds_the_share(part, whole):
    low, high = Share(part, whole).interval
    assert 0 <= low <= part / whole <= high <= 1 and high - low < 1
    assert Share(10 * part, 10 * whole).interval[1] - Share(10 * part, 10 * whole).interval[0] < high - low


@pytest.mark.parametrize("item, judgement, words", [
    (finding(), None, ""),
    (finding(), REAL, ""),
    (finding(debatable="x"), None, "debatable: x"),
    (finding(debatable="x"), REAL, ""),
    (finding(), Judgement(Label.NOT_A_BUG, why="by design"), "labelled not-a-bug: by design"),
    (finding(state=State.KNOWN, known_issue="#7"), None, "known: #7"),
    (finding(state=State.FLAKY), None, "flaky"),
    (finding(state=State.FIXED), None, "fixed"),
    (finding(state=State.IGNORED, note="later"), None, "ignored: later"),
])  # fmt: skip
def test_a_persons_word_counts_before_eddys(item, judgement, words):
    assert set_aside(item, judgement) == words
