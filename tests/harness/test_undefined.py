"""What nothing defines is told, and what is defined is not."""

import math

import pytest

torch = pytest.importorskip("torch")

from harness.observe import OperatorTrace  # noqa: E402


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
    assert written(fn, value) == []


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


def written(fn, *tensors):  # type: ignore[no-untyped-def]
    with OperatorTrace([*tensors]) as trace:
        fn(*tensors)
    return [op.get("undefined") for op in trace.ops if op.get("undefined")]


@pytest.mark.parametrize("fn", [
    lambda x, i, v: x.put(i, v),
    lambda x, i, v: x.clone().put_(i, v),
    lambda x, i, v: x.scatter(0, i, v),
    lambda x, i, v: x.index_copy(0, i, v),
    lambda x, i, v: x.index_put((i,), v),
    lambda x, i, v: x.expand(2, 4).index_put((i - i, i), v),
    lambda x, i, v: x[:, None].expand(4, 2).index_put((i,), v[:, None]),
])  # fmt: skip
def test_several_values_at_one_place_are_undefined_where_they_differ(fn) -> None:  # type: ignore[no-untyped-def]
    x, index = torch.zeros(4), torch.tensor([1, -3, 2])  # 1 and -3 are one place
    assert written(fn, x, index % 4, torch.tensor([1.0, 2.0, 3.0])) == ["several values written to one place"]
    assert written(fn, x, index % 4, torch.tensor([5.0, 5.0, 3.0])) == []
    assert written(fn, x, index % 4, torch.tensor([math.nan, math.nan, 3.0])) == []
    assert written(fn, x, torch.tensor([0, 3, 2]), torch.tensor([1.0, 2.0, 3.0])) == []


def test_adding_and_reducing_is_defined() -> None:
    x, index, value = torch.zeros(4), torch.tensor([1, 1, 2]), torch.tensor([1.0, 2.0, 3.0])
    assert written(lambda x, i, v: x.put(i, v, True), x, index, value) == []
    assert written(lambda x, i, v: x.put(i, v, accumulate=True), x, index, value) == []
    assert written(lambda x, i, v: x.index_put((i,), v, accumulate=True), x, index, value) == []
    assert written(lambda x, i, v: x.scatter(0, i, v, reduce="add"), x, index, value) == []
    assert written(lambda x, i, v: x.scatter_add(0, i, v), x, index, value) == []
    assert written(lambda x, i, v: x.scatter(0, i, 1.0), x, index, value) == []
    assert written(lambda x, m, v: x.index_put((m,), v), x, torch.tensor([True, False, True, True]), value) == []


def test_a_negative_index_is_the_place_that_it_names() -> None:
    x, index, value = torch.zeros(4), torch.tensor([1, -3]), torch.tensor([1.0, 2.0])
    assert written(lambda x, i, v: x.index_put((i,), v), x, index, value) == ["several values written to one place"]
