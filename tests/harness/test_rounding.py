"""Random rounding moves what rounds, by little, and nothing that is exact."""

import pytest

torch = pytest.importorskip("torch")

from harness.rounding import RandomRounding  # noqa: E402


def test_a_sum_that_cancels_moves_as_far_as_its_terms_are_rounded() -> None:
    x = torch.arange(33, dtype=torch.float64)
    plain = torch.log_softmax(x, 0).logsumexp(0)
    moved = []
    for seed in range(3):
        with RandomRounding(seed):
            moved.append(float(torch.log_softmax(x, 0).logsumexp(0) - plain))
    assert any(moved) and max(map(abs, moved)) < 1e-13


def test_what_is_exact_stays_and_views_are_not_moved_twice() -> None:
    x = torch.tensor([[1.0, 3.0], [3.0, 2.0]])
    with RandomRounding(1):
        assert bool((x == x.amax()).any()) and torch.equal(x.t().clone().flip(0), x.t().flip(0))
        assert torch.equal(torch.where(x > 1, x, 0), torch.tensor([[0.0, 3.0], [3.0, 2.0]]))
        y = x * 1.5
        seen = y.view(4).tolist()
        assert seen == y.flatten().tolist() != (x * 0 + 1).tolist()
    assert x.tolist() == [[1.0, 3.0], [3.0, 2.0]]


def test_the_result_of_a_rounding_operator_moves_by_one_ulp() -> None:
    x = torch.linspace(1, 2, 50)
    with RandomRounding(2):
        y = x * 3
    distance = (y - x * 3).abs() / torch.finfo(torch.float32).eps
    assert bool((distance > 0).all()) and float(distance.max()) <= 4


def test_computed_anew_each_use_of_a_result_sees_another_rounding() -> None:
    x = torch.linspace(1, 2, 50)
    with RandomRounding(3, anew=True):
        y = torch.exp2(x)
        differs = y - y.amax()
        of_input = x - x.amax()
        y.view(5, 10).zero_()
    assert bool((differs[-3:] != 0).any()) and float(differs.max()) < 1e-6
    assert torch.equal(of_input, x - 2), "an input is not computed"
    assert not y.any(), "what is written in place is the result itself"
