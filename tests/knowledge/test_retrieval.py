"""Retrieval: the filter, the score, the penalty; and the vector of a program."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.engines.idiom import Idiom
from fuzzer.features.detect import default_space
from fuzzer.knowledge import trigger
from fuzzer.knowledge.families import Families
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Pattern, load_patterns
from fuzzer.knowledge.retrieval import Retriever, program_vector
from fuzzer.program import Program

SHIPPED = [entry for entry in load_patterns().entries if isinstance(entry, Pattern)]
RETRIEVER = Retriever(SHIPPED, default_space().compatible)
FEATURES = sorted(default_space().features)


def pattern(name: str, text: str, **more: Any) -> Pattern:
    known: dict[str, Any] = {"title": name, "family": name, "action": "a", "oracle": "value", **more}
    return Pattern(id=name, trigger=trigger.parse(text, name), template=Idiom(frozenset({"float"}), "r = x"), **known)


def ids(found: list[Any]) -> list[str]:
    return [match.pattern.id for match in found]


def test_the_more_telling_trigger_comes_first() -> None:
    known = [
        pattern("layout", "layout=transposed"),
        pattern("both", "layout=transposed & op=argmax"),
        pattern("no", "op=cat"),
    ]
    assert ids(Retriever(known).retrieve({"layout=transposed", "op=argmax"})) == ["both", "layout"]


def test_the_posterior_mixes_in_by_alpha() -> None:
    known = [pattern("often", "op=argmax"), pattern("telling", "op=argmax & layout=transposed")]
    posteriors = {"often": (30.0, 1.0), "telling": (1.0, 30.0)}
    vector = {"op=argmax", "layout=transposed"}
    assert ids(Retriever(known).retrieve(vector, posteriors, alpha=1.0))[0] == "telling"
    assert ids(Retriever(known).retrieve(vector, posteriors, alpha=0.2))[0] == "often"


def test_the_same_family_gives_way_to_another() -> None:
    known = [
        pattern("first", "op=argmax & layout=transposed", family="index"),
        pattern("second", "op=argmax & layout=transposed & dtype=int8", family="index"),
        pattern("other", "op=argmax", family="dtype"),
    ]
    found = Retriever(known).retrieve({"op=argmax", "layout=transposed", "dtype=int8"}, k=2)
    assert ids(found) == ["second", "other"]


def test_asked_vectors_leave_the_rest_free_but_not_what_they_rule_out() -> None:
    known = [pattern("backward", "mode=backward & op=amax"), pattern("negated", "op=amax & !mode=forward")]
    assert ids(Retriever(known).retrieve({"mode=backward"}, whole=True)) == []
    retriever = Retriever(known, default_space().compatible)
    assert ids(retriever.retrieve({"op=amax"}, whole=False)) == ["backward", "negated"]
    assert ids(retriever.retrieve({"op=amax", "mode=forward"}, whole=False)) == []


@given(st.frozensets(st.sampled_from(FEATURES), max_size=12), st.booleans())
def test_retrieval_is_deterministic_bounded_and_ordered_by_the_filter(vector: frozenset[str], whole: bool) -> None:
    found = RETRIEVER.retrieve(vector, whole=whole)
    assert found == RETRIEVER.retrieve(vector, whole=whole) and len(found) <= 3
    assert len(set(ids(found))) == len(found)
    for match in found:
        assert 0 <= match.match <= match.score / 0.8 and match.score <= 1
        assert match.pattern.trigger.holds(vector) if whole else match.pattern.trigger.positive & vector
    if len(found) < 3:  # nothing that holds is left out
        fitting = {known.id for known in SHIPPED if known.trigger.holds(vector)}
        assert not whole or fitting == set(ids(found))


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("return x.t().argmin()", {"op=argmin", "op=t", "family=index_reduction"}),
        ("return torch.special.log_ndtr(x.half())", {"op=log_ndtr", "family=special", "dtype=float16"}),
        ("return x @ x.mT // 2", {"op=matmul", "op=mT", "op=floor_divide", "family=matmul"}),
        ("x.add_(1)\n    return torch.nn.functional.pad(x, (1, 1))", {"op=add_", "op=add", "op=pad", "family=padding"}),
    ],
)
def test_the_vector_of_a_text(body: str, wanted: set[str]) -> None:
    text = f"import torch\n\n\ndef build_inputs():\n    return (torch.randn(3, 3),)\n\n\ndef fn(x):\n    {body}\n"
    vector = program_vector(Program.parse(text), None, Operators.load_extract().family_of_aten, Families.load())
    assert wanted <= vector
    assert not any(name.startswith("op=randn") for name in vector), "what only makes inputs does not count"
