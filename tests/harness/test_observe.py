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


@pytest.mark.parametrize(
    ("what", "fn", "value"),
    [
        ("float to integer out of range", lambda x: x.to(torch.int8), torch.tensor([1.0, 300.0])),
        ("float to integer out of range", lambda x: x.to(torch.int64), torch.tensor([math.nan])),
        ("float to integer out of range", lambda x: x.to(torch.uint8), torch.tensor([-2.0])),
        ("shift past the width", lambda x: x << 40, torch.ones(2, dtype=torch.int32)),
        ("integer division by zero", lambda x: x // x, torch.tensor([0.0]).int() + 0),
        ("uninitialised memory", lambda x: torch.empty_like(x), torch.ones(2)),
        ("written in place where elements overlap", lambda x: x.unfold(0, 3, 1).floor_divide_(2), torch.ones(4)),
        ("as_strided outside its input's own elements", lambda x: x[::2].as_strided((4,), (1,)), torch.ones(4)),
    ],
)
def test_undefined_operations_are_told(what, fn, value) -> None:  # type: ignore[no-untyped-def]
    trace = OperatorTrace([value])
    try:
        with trace:
            fn(value)
    except RuntimeError:
        pytest.skip("this torch refuses it, which is better")
    assert what in [op.get("undefined") for op in trace.ops]


@pytest.mark.parametrize(
    ("fn", "value"),
    [
        (lambda x: x.to(torch.int8), torch.tensor([127.9, -128.9])),
        (lambda x: x << 3, torch.ones(2, dtype=torch.int32)),
        (lambda x: x.as_strided((2, 2), (1, 2)), torch.ones(4)),
        (lambda x: x.to(torch.bool), torch.tensor([math.nan])),
        (lambda x: x.expand(3, 4).fill_(2), torch.ones(1, 4)),
        (lambda x: x.t().add_(1), torch.ones(3, 4)),
        (lambda x: x / x, torch.zeros(2, dtype=torch.int32)),
    ],
)
def test_defined_ones_are_not(fn, value) -> None:  # type: ignore[no-untyped-def]
    trace, _value = traced(fn, value)
    assert not any(op.get("undefined") for op in trace.ops)


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


def test_weights_of_fewer_channels_than_the_input_has_are_read_beyond_their_end() -> None:
    x, one, two = torch.randn(2, 2, 3), torch.ones(1), torch.ones(2)
    with OperatorTrace([x, one, two]) as trace:
        torch.native_batch_norm(x, two, two, two, two, True, 0.5, 1e-5)
        torch.native_batch_norm(x, two, two, one, one, False, 0.5, 1e-5)
    assert [op.get("undefined") for op in trace.ops if "batch_norm" in op["op"]] == [None, "reads beyond its arguments"]


def test_a_polynomial_of_no_degree_is_undefined() -> None:
    x, degree = torch.tensor([0.5]), torch.tensor([float("nan")])
    with OperatorTrace([x, degree]) as trace:
        torch.special.chebyshev_polynomial_t(x, degree)
        torch.special.chebyshev_polynomial_t(x, torch.tensor([3.0]))
    assert [bool(op.get("undefined")) for op in trace.ops if "chebyshev" in op["op"]] == [True, False]
