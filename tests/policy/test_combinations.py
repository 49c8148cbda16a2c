"""Pairs of features: each is new once, within bounded memory."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.combinations import Combinations

FEATURES = [f"{dimension}={value}" for dimension in "abc" for value in "xyz"]


@given(st.lists(st.sets(st.sampled_from([*FEATURES, "gone=1"])), max_size=10))
def test_pairs_agree_with_a_plain_set(history: list[set[str]]) -> None:
    pairs, plain = Combinations(FEATURES), set()
    for realised in history:
        known = sorted(realised - {"gone=1"})
        expected = {f"pairs:{a}+{b}" for a, b in combinations(known, 2) if a[0] != b[0]}
        assert pairs.unseen_pairs(known) == len(expected - plain)
        unseen = pairs.unseen(realised)
        assert pairs.absorb(realised) == unseen == sorted(expected - plain)
        plain |= expected
    assert pairs.total == len(plain)
    copy = Combinations.from_map(pairs.to_map())
    assert copy.to_map() == pairs.to_map()


def test_memory_is_a_bit_a_pair() -> None:
    pairs = Combinations(f"d{number}=v" for number in range(200))
    assert len(pairs.absorb(pairs.features)) == 200 * 199 // 2
    assert len(pairs.to_map()["seen"]) == (200 * 199 // 2 + 7) // 8
    assert pairs.absorb(pairs.features) == []
