"""The reward: findings first, coverage saturating and rarer with time, no domain drowning another."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.reward import COVERAGE_CAP, reward
from fuzzer.verdict import Kind

counts = st.dictionaries(st.sampled_from(["native", "python", "events", "pairs", "other"]), st.integers(0, 10**6))


def passing(new: dict[str, int], totals: dict[str, int], runs: int) -> float:
    return reward(Kind.PASS, False, new, totals, runs)


@given(st.sampled_from(Kind), st.booleans(), counts, counts, st.integers(1, 10**6))
def test_bounds(kind: Kind, finding: bool, new: dict[str, int], totals: dict[str, int], runs: int) -> None:
    value = reward(kind, finding, new, totals, runs)
    assert value == 1.0 if finding else 0.0 <= value <= COVERAGE_CAP


@pytest.mark.parametrize("kind", [Kind.INVALID, Kind.FLAKY, Kind.HARNESS_ERROR, Kind.WRONG_VALUE, Kind.CRASH])
def test_faults_and_duplicates_earn_nothing(kind: Kind) -> None:
    assert reward(kind, False, {"native": 100}, {"native": 100}, 10) == 0.0
    assert reward(kind.value, False, {"native": 100}, {"native": 100}, 10) == 0.0


def test_nothing_new_earns_nothing() -> None:
    assert passing({}, {"native": 5000}, 100) == passing({"native": 0}, {"native": 5000}, 100) == 0.0


def test_the_same_delta_is_worth_more_later() -> None:
    early = passing({"native": 5}, {"native": 5000}, 10)
    late = passing({"native": 5}, {"native": 9000}, 10_000)
    assert late > 5 * early > 0


@given(st.integers(1, 10**4))
def test_more_is_better_but_less_and_less(new: int) -> None:
    at = [passing({"python": size}, {"python": 20_000}, 2000) for size in (new, new + 10, new + 20)]
    assert at[0] <= at[1] <= at[2]
    assert at[2] - at[1] <= at[1] - at[0] + 1e-12


def test_a_million_ids_of_one_domain_do_not_drown_another() -> None:
    one = passing({"pairs": 10**6}, {"pairs": 10**6}, 10**6)
    both = passing({"pairs": 10**6, "python": 3}, {"pairs": 10**6, "python": 9000}, 10**6)
    assert one == pytest.approx(0.1)  # half of its weight, 0.2
    assert both > 2 * one
