"""Facts about what ran: operators with dataflow, undefined operations, ties, words for values."""

import math

import pytest

torch = pytest.importorskip("torch")

from harness.observe import IndexSource, OperatorTrace, gathered_equal, value_words  # noqa: E402

pytestmark = pytest.mark.torch


def traced(fn, *inputs):  # type: ignore[no-untyped-def]
    trace = OperatorTrace(list(inputs))
    with trace:
        value = fn(*inputs)
    return trace, value


def test_dataflow_is_recorded() -> None:
    trace, _value = traced(lambda a, b: torch.sin(a + b), torch.ones(2, 3), torch.ones(3))
    assert [op["op"] for op in trace.ops] == ["aten.add.Tensor", "aten.sin.default"]
    assert [op["inputs"] for op in trace.ops] == [[-1, -2], [0]]
    assert trace.ops[0]["tensors"][0] == ["float32", [2, 3], [3, 1], 0]


def test_indices_of_equal_values_are_a_tie() -> None:
    source = torch.tensor([[1.0, 5.0, 5.0], [2.0, 2.0, 0.0]])
    one, tied, wrong = torch.tensor([1, 0]), torch.tensor([2, 1]), torch.tensor([0, 1])
    assert gathered_equal(IndexSource(source, 1, (2,)), one, tied) is True
    assert gathered_equal(IndexSource(source, 1, (2,)), one, wrong) is False
    assert gathered_equal(IndexSource(source, None, ()), torch.tensor(1), torch.tensor(2)) is True
    assert gathered_equal(IndexSource(source, 1, (2,)), one, torch.tensor([9, 9])) is None


def test_words_for_values() -> None:
    assert set(value_words(torch.tensor([math.nan, math.inf, -1.0, 0.0, 0.0]))) >= {"nan", "inf", "negative", "zero"}
    assert "extreme" in value_words(torch.tensor([127, 1], dtype=torch.int8))
    assert "denormal" in value_words(torch.tensor([1e-41]))
    assert value_words(torch.ones(0)) == ["empty"]


def test_indices_of_pooling_count_within_planes_and_survive_views() -> None:
    nan = float("nan")
    image = torch.tensor([[[nan, nan, 1.0, 2.0]], [[5.0, 5.0, 1.0, 2.0]]])
    with OperatorTrace([image]) as trace:
        _values, indices = torch.nn.functional.max_pool1d(image, 4, return_indices=True)
    source = trace.index_sources[id(indices)]
    assert gathered_equal(source, torch.tensor([[[0]], [[0]]]), torch.tensor([[[1]], [[1]]])) is True
    assert gathered_equal(source, torch.tensor([[[0]], [[0]]]), torch.tensor([[[1]], [[3]]])) is False


def test_the_condition_of_a_sum_is_recorded() -> None:
    values = torch.cat([torch.full((50,), 1.0), torch.full((50,), -1.0), torch.tensor([0.5])])
    with OperatorTrace([values]) as trace:
        values.sum()
        values.reshape(101, 1).sum(dim=1)
        values[:3].sum()
    conditions = [op.get("cancellation") for op in trace.ops if "sum" in op["op"]]
    assert conditions == [201.0, None, None]
