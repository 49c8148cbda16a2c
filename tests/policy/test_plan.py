"""Plans and outcomes survive the journal."""

from __future__ import annotations

import msgpack
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.plan import Outcome, Plan

texts = st.lists(st.text(min_size=1, max_size=5), max_size=4).map(tuple)
numbers = st.integers(1, 2**62 - 1)
plans = st.one_of(
    st.builds(Plan, number=numbers, engine=st.just("template"), features=texts, families=texts, random=numbers),
    st.builds(Plan, number=numbers, engine=st.just("mutate"), operator=st.just("splice"), seed=st.just("a"),
              donor=st.just("b"), features=texts, families=texts, random=numbers),
)  # fmt: skip
outcomes = st.builds(
    Outcome, plan=plans, kind=st.just("pass"), reward=st.floats(0, 1), cost=st.floats(0.01, 100),
    realised=texts.map(frozenset), operators=texts, new_coverage=st.dictionaries(st.text(), st.integers(0, 9)),
    species=texts,
)  # fmt: skip


@given(outcomes)
def test_round_trip_through_msgpack(outcome: Outcome) -> None:
    data = msgpack.unpackb(msgpack.packb(outcome.to_map()))
    assert Outcome.from_map(data) == outcome
    assert Outcome.from_map({**data, "key of a newer version": 1}) == outcome
