"""Good–Turing against the truth of a known distribution; plateaus; Beta quantiles against closed forms."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.policy.estimate import GoodTuring, Plateau, beta_cdf, beta_quantile


def test_good_turing_estimates_the_missing_mass() -> None:
    rng, estimate = random.Random(1), GoodTuring(window=2000)
    weights = [1 / (rank + 1) for rank in range(2000)]
    seen = set()
    for kind in rng.choices(range(2000), weights, k=2000):
        estimate.observe([f"s{kind}"])
        seen.add(kind)
    missing = sum(weight for kind, weight in enumerate(weights) if kind not in seen) / sum(weights)
    assert estimate.probability == pytest.approx(missing, rel=0.2)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), max_size=4), max_size=30), st.integers(1, 10))
def test_the_window_equals_a_recount(runs: list[list[str]], window: int) -> None:
    estimate = GoodTuring(window)
    for run in runs:
        estimate.observe(run)
    recent = [set(run) for run in runs[-window:]]
    once = sum(1 for name in "abcdefgh" if sum(name in run for run in recent) == 1)
    assert estimate.probability == (min(1.0, once / len(recent)) if recent else 1.0)
    assert GoodTuring.from_map(estimate.to_map()).to_map() == estimate.to_map()


def test_plateau_needs_a_full_quiet_window() -> None:
    plateau = Plateau(window=100)
    for _ in range(99):
        plateau.observe(["k"], False)
    assert not plateau.reached
    plateau.observe(["k"], False)
    assert plateau.reached
    assert Plateau.from_map(plateau.to_map()).reached
    for number in range(5):
        plateau.observe(["k"], number < 2)
    assert not plateau.reached  # two discoveries in a hundred runs
    for number in range(100):
        plateau.observe([f"rare{number}"], False)
    assert not plateau.reached  # every run shows another kernel


@pytest.mark.parametrize("a, b", [(1, 19), (0.5, 0.5), (20, 3), (1000, 5000), (0.1, 20)])
def test_beta_quantile_inverts_the_distribution(a: float, b: float) -> None:
    for q in (0.05, 0.5, 0.95):
        x = beta_quantile(q, a, b)
        if x > 1e-6:  # below it, bisection to 1e-9 is coarse
            assert beta_cdf(x, a, b) == pytest.approx(q, abs=1e-4)


@given(st.floats(0.001, 0.999), st.floats(0.2, 50))
def test_beta_cdf_closed_forms(x: float, b: float) -> None:
    assert beta_cdf(x, 1, b) == pytest.approx(1 - (1 - x) ** b, abs=1e-9)
    assert beta_cdf(x, b, 1) == pytest.approx(x**b, abs=1e-9)
    assert beta_cdf(x, b, b) == pytest.approx(1 - beta_cdf(1 - x, b, b), abs=1e-9)
