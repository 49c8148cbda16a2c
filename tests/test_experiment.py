"""Arms, trials, statistics, and the table."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.experiment import (
    BUILT_IN,
    METRICS,
    Arm,
    Results,
    Spec,
    a12,
    bootstrap,
    difference,
    mann_whitney,
    measures,
    table,
)

numbers = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=6)


def test_trials_go_seed_by_seed() -> None:
    spec = Spec((BUILT_IN["template"], BUILT_IN["llm"]), seconds=60.0, repeat=2, seed=7)
    assert [trial.name for trial in spec.trials] == ["template-7", "llm-7", "template-8", "llm-8"]
    assert Spec.from_map(spec.to_map(), "here") == spec


def test_which_arms_use_a_model() -> None:
    assert [arm.name for arm in BUILT_IN.values() if not arm.uses_model] == ["template"]
    assert Arm("a", ("--engine=llm",)).uses_model
    assert not Arm("a", ("--engine", "template", "--seeds", "llm")).uses_model


@pytest.mark.parametrize(
    ("arms", "more", "words"),
    [
        ((), {"seconds": 1.0}, "needs arms"),
        ((Arm("a"), Arm("a")), {"seconds": 1.0}, "named twice"),
        ((Arm("a"),), {}, "needs an end"),
    ],
)
def test_specs_that_cannot_be(arms: tuple[Arm, ...], more: dict[str, float], words: str) -> None:
    with pytest.raises(UserError, match=words):
        Spec(arms, **more)  # type: ignore[arg-type]


def test_a_name_cannot_leave_the_folder() -> None:
    for name in ("", "../up", "a/b", ".hidden"):
        with pytest.raises(UserError, match="names folders"):
            Arm(name)


@settings(deadline=None)
@given(numbers, numbers)
def test_a12_is_a_chance_and_antisymmetric(left: list[float], right: list[float]) -> None:
    assert 0.0 <= a12(left, right) <= 1.0
    assert a12(left, right) + a12(right, left) == pytest.approx(1.0)
    assert a12(left, left) == 0.5


def test_a12_of_the_paper() -> None:
    assert a12([3, 4], [1, 2]) == 1.0 and a12([1, 3], [2]) == 0.5 and a12([1, 2], [2, 2]) == 0.25


@settings(deadline=None, max_examples=10)  # each resamples some ten thousand times
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=5), st.integers(0, 3))
def test_the_interval_lies_within_the_values(values: list[float], seed: int) -> None:
    low, high = bootstrap(values, seed)
    assert min(values) - 1e-9 <= low <= high <= max(values) + 1e-9
    assert bootstrap(values, seed) == (low, high)


def test_a_difference_is_taken_within_seeds() -> None:
    pytest.importorskip("scipy")
    base = {1: 10.0, 2: 20.0, 3: 30.0, 9: 1e9}  # a seed that the arm has not run yet says nothing
    one = difference({1: 11.0, 2: 21.0, 3: 31.0}, base)
    assert one is not None
    assert (one.mean, one.low, one.high, one.pairs) == (1.0, 1.0, 1.0, 3)
    assert one.a12 == pytest.approx(6 / 9) and one.p is not None and one.p > 0.5
    assert difference({1: 1.0}, base) is None
    assert mann_whitney([1.0, 1.0], [1.0, 1.0]) == 1.0


def test_measures_of_a_status() -> None:
    status = {"execs_done": 50, "run_time": 100, "valid_rate": 0.9, "coverage": {"native": 7}, "llm_requests": 3}
    row = measures({**status, "findings": {"confirmed": 2, "flaky": 1}, "llm_money": 0.5}, groups=1)
    assert row["programs_per_hour"] == 1800.0 and row["coverage_native"] == 7.0 and row["coverage_python"] == 0.0
    assert (row["confirmed"], row["flaky"], row["groups"], row["llm_calls"], row["llm_money"]) == (2, 1, 1, 3, 0.5)
    assert row.keys() == {metric.name for metric in METRICS}


def test_the_table_compares_with_the_first_arm() -> None:
    row = measures({"execs_done": 10, "run_time": 10}, 0)
    values = {
        arm: {seed: {**row, "programs": 10.0 + more * seed} for seed in (1, 2)} for arm, more in (("a", 0), ("b", 1))
    }
    results = Results(("a", "b"), values)
    text = table(results)
    assert "| programs           |    10 |    12 |" in text.splitlines()
    assert "b − a, 2 seeds:" in text and "LLM" not in text
    assert [line for line in text.splitlines() if line.startswith("| programs  ")][-1].split("|")[2].strip() == "2"
    assert len(set(map(len, text.split("\n\n")[0].splitlines()))) == 1
    assert results.to_map()["differences"]["b"]["programs"]["mean"] == 1.5
