"""Triggers: the grammar, what holds, what may still hold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.knowledge.trigger import parse

ATOMS = ("a=1", "b=2", "c=3", "adjacency=view>inplace")
EXPRESSIONS = st.recursive(
    st.sampled_from(ATOMS),
    lambda inner: st.one_of(
        inner.map(lambda text: f"!({text})"),
        st.tuples(inner, inner, st.sampled_from("&|")).map(lambda parts: f"({parts[0]}) {parts[2]} ({parts[1]})"),
    ),
    max_leaves=6,
)


def as_python(text: str, vector: frozenset[str]) -> bool:
    """The same expression by Python's own evaluator."""
    for atom in sorted(ATOMS, key=len, reverse=True):
        text = text.replace(atom, str(atom in vector))
    return bool(eval(text.replace("!", " not ").replace("&", " and ").replace("|", " or ")))


@given(EXPRESSIONS, st.frozensets(st.sampled_from(ATOMS)))
def test_holds_as_python_says(text: str, vector: frozenset[str]) -> None:
    assert parse(text, "here").holds(vector) == as_python(text, vector)


@given(EXPRESSIONS, st.frozensets(st.sampled_from(ATOMS)), st.frozensets(st.sampled_from(ATOMS)))
def test_what_holds_later_was_possible_and_has_what_is_necessary(
    text: str, asked: frozenset[str], more: frozenset[str]
) -> None:
    trigger, later = parse(text, "here"), asked | more
    if trigger.holds(later):
        assert trigger.possible(asked, lambda atom: atom not in later)
        assert trigger.necessary <= later
    assert trigger.necessary <= trigger.atoms and trigger.positive <= trigger.atoms


def test_precedence_and_strength() -> None:
    trigger = parse("a=1 | b=2 & !c=3", "here")
    assert trigger.holds({"a=1", "c=3"}) and trigger.holds({"b=2"}) and not trigger.holds({"b=2", "c=3"})
    assert trigger.positive == {"a=1", "b=2"} and trigger.necessary == frozenset()
    weights = {"a=1": 1.0, "b=2": 2.5}
    assert trigger.strength({"a=1", "b=2"}, weights) == 2.5, "of alternatives the strongest counts"
    assert parse("a=1 & b=2", "here").strength({"a=1", "b=2"}, weights) == 3.5


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a=1 &", "missing at the end"),
        ("(a=1", "not closed"),
        ("a=1 b=2", "left over"),
        ("a", "cannot read 'a'"),
        ("| a=1", "where an atom ought to stand"),
        ("", "missing at the end"),
    ],
)
def test_bad_expressions_are_explained(text: str, message: str) -> None:
    with pytest.raises(UserError, match=f"^file: x.trigger: .*{message}"):
        parse(text, "file: x.trigger")
