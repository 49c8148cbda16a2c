"""The bandit finds a good arm, follows it when it moves, respects its floor, and survives a save bit by bit."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.bandit import ArmSet

NAMES = [f"arm{number}" for number in range(24)]


def play(arms: ArmSet, rng: random.Random, pulls: int, rates: dict[str, float], costs: dict[str, float]) -> dict:
    counts = dict.fromkeys(NAMES, 0)
    for _ in range(pulls):
        arm = arms.choose(rng)
        counts[arm] += 1
        arms.credit(arm, float(rng.random() < rates.get(arm, 0.03)), costs.get(arm, 1.0))
    return counts


@pytest.mark.parametrize("seed", range(3))
def test_a_good_arm_is_found_and_followed_when_it_moves(seed: int) -> None:
    rng, arms = random.Random(seed), ArmSet("test", NAMES)
    counts = play(arms, rng, 3000, {"arm5": 0.3}, {})
    assert counts["arm5"] > 0.4 * 3000  # uniform choice would give 125
    play(arms, rng, 3000, {"arm9": 0.3}, {})
    counts = play(arms, rng, 1000, {"arm9": 0.3}, {})
    assert max(counts, key=counts.__getitem__) == "arm9"
    assert counts["arm9"] > 0.4 * 1000


def test_cheap_arms_win_at_equal_rates() -> None:
    rng, arms = random.Random(1), ArmSet("test", NAMES)
    counts = play(arms, rng, 4000, dict.fromkeys(NAMES, 0.2), dict.fromkeys(NAMES[:12], 8.0))
    assert sum(counts[name] for name in NAMES[12:]) > 0.8 * 4000


def test_fractional_rewards_order_arms() -> None:
    rng, arms = random.Random(2), ArmSet("test", ["low", "high"])
    for _ in range(300):
        arms.credit("low", 0.1, 1.0)
        arms.credit("high", 0.3, 1.0)
    assert arms.posterior("high")[1] > arms.posterior("low")[2]
    assert sum(arms.choose(rng) == "high" for _ in range(500)) > 450


def test_the_floor_keeps_hopeless_arms_alive() -> None:
    rng, arms = random.Random(3), ArmSet("test", NAMES)
    for _ in range(100):
        for name in NAMES:
            arms.credit(name, float(name == "arm0"), 1.0)
    others = sum(arms.choose(rng) != "arm0" for _ in range(10_000)) / 10_000
    assert others == pytest.approx(0.05 * 23 / 24, abs=0.01)
    assert sum(arms.choose(rng, exploration=0.5) != "arm0" for _ in range(2000)) > 800


def test_not_learning_is_uniform() -> None:
    rng, arms = random.Random(4), ArmSet("test", NAMES, learning=False)
    counts = play(arms, rng, 4800, {"arm5": 1.0}, {})
    assert min(counts.values()) > 130 and max(counts.values()) < 280
    assert arms.pulls("arm5") == 0


def test_choose_many_gives_distinct_arms_and_only_those_allowed() -> None:
    rng, arms = random.Random(5), ArmSet("test", NAMES)
    for _ in range(100):
        chosen = arms.choose_many(rng, 4, NAMES[:6])
        assert len(set(chosen)) == 4 and set(chosen) <= set(NAMES[:6])
    assert len(arms.choose_many(rng, 9, NAMES[:2])) == 2
    with pytest.raises(ValueError, match="nothing to choose"):
        arms.choose(rng, [])


def test_the_discount_is_lazy_but_exact() -> None:
    arms = ArmSet("test", ["a", "b"], gamma=0.9)
    arms._discount = lambda credited: 0.9  # type: ignore[method-assign]
    expected = {"a": 0.0, "b": 0.0}
    for arm in "aababbbbba":
        for name in expected:
            expected[name] *= 0.9
        expected[arm] += 1
        arms.credit(arm, 0.5, 2.0)
    for name, pulls in expected.items():
        assert arms.pulls(name) == pytest.approx(pulls)
    assert arms.total_pulls == pytest.approx(sum(expected.values()))
    assert arms.mean_cost == pytest.approx(2.0)


def test_an_arms_window_holds_forty_pulls_however_many_arms_there_are() -> None:
    names = [f"operator{number}" for number in range(200)]
    arms = ArmSet("many", names)
    for pull in range(60_000):
        arms.credit(names[pull % 200], 0.0, 1.0)
    assert 39 < arms.pulls("operator199") < 42


def test_shared_pulls_discount_once() -> None:
    together, alone = ArmSet("a", NAMES), ArmSet("b", NAMES)
    for _ in range(50):
        together.credit_many(NAMES[:10], 1.0, 1.0)
        alone.credit("arm0", 1.0, 1.0)
    assert together.pulls("arm0") == alone.pulls("arm0")
    assert together.total_pulls == alone.total_pulls


def test_multipliers_are_bounded_and_lifted() -> None:
    arms = ArmSet("test", ["a", "b"])
    arms.set_multiplier("a", "advice", 100.0)
    assert arms.multiplier("a") == 4.0
    arms.set_multiplier("a", "blocker:x", 0.25)
    assert arms.multiplier("a") == 1.0
    arms.set_multiplier("a", "advice", 1.0)
    assert arms.multiplier("a") == 0.25
    rng = random.Random(6)
    assert sum(arms.choose(rng) == "b" for _ in range(1000)) > 700


def test_posterior_before_any_pull_is_the_prior() -> None:
    mean, low, high = ArmSet("test", ["a"]).posterior("a")
    assert mean == pytest.approx(0.05)
    assert low == pytest.approx(1 - 0.95 ** (1 / 19), abs=1e-6)  # the quantiles of Beta(1, 19) in closed form
    assert high == pytest.approx(1 - 0.05 ** (1 / 19), abs=1e-6)


credits = st.lists(
    st.tuples(st.lists(st.sampled_from("abcdef"), min_size=1), st.floats(0, 1), st.floats(0.01, 100)), max_size=40
)


@given(credits, st.integers(0, 2**32))
def test_state_survives_exactly(history, seed: int) -> None:
    arms = ArmSet("test", "abc")
    for names, reward, cost in history:
        arms.credit_many(names, reward, cost)
    arms.set_multiplier("a", "advice", 2.0)
    copy = ArmSet.from_map(arms.to_map())
    assert copy.to_map() == arms.to_map()
    left, right = random.Random(seed), random.Random(seed)
    for _ in range(5):
        arm = arms.choose(left)
        assert copy.choose(right) == arm
        arms.credit(arm, 0.5, 1.0)
        copy.credit(arm, 0.5, 1.0)
    assert copy.to_map() == arms.to_map()
