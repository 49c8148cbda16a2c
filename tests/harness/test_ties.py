"""Ties decided the other way: indices change, values do not, and nothing changes where there is no tie."""

import pytest

torch = pytest.importorskip("torch")

from harness.ties import OtherTies  # noqa: E402

TIED = torch.tensor([[1.0, 3.0, 3.0], [2.0, 2.0, 0.0]])


def test_another_of_several_equal_maxima_is_named() -> None:
    with OtherTies() as ties:
        values, indices = TIED.max(dim=1)
    assert values.tolist() == [3.0, 2.0] and indices.tolist() == [2, 1] and ties.changed
    with OtherTies():
        assert TIED.argmin(dim=1).tolist() == [0, 2]
        assert int((-TIED).argmin()) == 2


def test_pooling_and_top_k() -> None:
    plane = torch.zeros(1, 1, 4, 4)
    with OtherTies():
        values, indices = torch.nn.functional.max_pool2d(plane, 2, return_indices=True)
        _top, where = torch.topk(torch.tensor([5, 7, 7]), 1)
    assert not values.any() and indices.flatten().tolist() == [5, 7, 13, 15] and where.tolist() == [2]


def test_unequal_values_and_promised_orders_stay() -> None:
    with OtherTies() as ties:
        assert torch.tensor([1.0, 3.0, 2.0]).argmax() == 1
        assert torch.sort(torch.tensor([1.0, 1.0]), stable=True).indices.tolist() == [0, 1]
        assert torch.tensor([1.0, float("nan")]).argmin() == 1
    assert not ties.changed


def test_nan_is_equal_to_nan_and_wins_either_way() -> None:
    values = torch.tensor([float("nan"), 2.0, float("nan"), 1.0])
    with OtherTies():
        assert [int(values.argmax()), int(values.argmin())] == [2, 2]
        _values, indices = torch.nn.functional.max_pool1d(values[None], 4, return_indices=True)
    assert int(indices) != int(torch.nn.functional.max_pool1d(values[None], 4, return_indices=True)[1])
