"""Arguments at their limits: every limit is a literal, changes one argument, and asks nothing undefined or endless."""

from __future__ import annotations

import ast

from hypothesis import given, settings
from hypothesis import strategies as st

from fuzzer.engines.boundary import INT64_MAX, INT64_MIN, limits
from fuzzer.engines.mutate.tables import ALLOCATING
from fuzzer.knowledge.operators import Call, Form, Literal, Operator, Operators, Tensor

KNOWN = Operators.load_extract()
CALLS = [(operator, call) for operator in KNOWN for call in operator.calls]


def made(schema: str, call: Call, name: str = "thing") -> Operator:
    form = Form("function", f"torch.{name}")
    return Operator(name, "", "other", (), (form,), ("float32",), True, False, (schema,), (call,), "lowered")


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CALLS))
def test_a_limit_changes_one_literal_argument_and_nothing_else(pair: tuple[Operator, Call]) -> None:
    operator, call = pair
    found = limits(operator, call)
    assert found == limits(operator, call), "the same every time"
    for limit in found:
        ast.parse(limit.text, mode="eval")
        assert limit.call.tensors == call.tensors
        before, after = call.bind(), limit.call.bind()
        changed = [i for i, (a, b) in enumerate(zip(before.args, after.args, strict=True)) if a != b]
        changed += [name for name in before.kwargs if before.kwargs[name] != after.kwargs[name]]
        assert changed == [limit.place]


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(CALLS))
def test_nothing_undefined_and_nothing_endless(pair: tuple[Operator, Call]) -> None:
    operator, call = pair
    for limit in limits(operator, call):
        assert not any(word in operator.name for word in ("shift", "as_strided", "resize", "empty"))
        if limit.about == "extreme":
            assert operator.name.rpartition(".")[2] not in ALLOCATING and call.tensors
        if limit.about in ("size", "window"):
            value = ast.literal_eval(limit.text)
            assert all(abs(number) <= 10_000 for number in (value if isinstance(value, tuple) else (value,)))


@settings(deadline=None)
@given(st.lists(st.integers(1, 9), max_size=5))
def test_a_dimension_is_taken_to_both_ends_and_past_them(shape: list[int]) -> None:
    call = Call((Tensor(tuple(shape), "float32"),), {"dim": Literal("7")})
    texts = {limit.text for limit in limits(made("aten::thing(Tensor self, int dim=-1) -> Tensor", call), call)}
    rank = len(shape)
    assert {str(rank), str(-rank - 1), str(-rank), str(rank - 1)} <= texts | {"7"}


def test_positions_reach_the_extremes_of_int64_and_sizes_do_not() -> None:
    call = Call((Tensor((4,), "float32"), Literal("1"), Literal("2")), {})
    schema = "aten::thing(Tensor self, SymInt start, SymInt[] size) -> Tensor"
    found = limits(made(schema, call), call)
    starts = {limit.text for limit in found if limit.name == "start"}
    sizes = {limit.text for limit in found if limit.name == "size"}
    assert {str(INT64_MAX), str(INT64_MIN), "4", "5", "-5"} <= starts
    assert sizes == {"0", "1", "4", "5", "-1"}


def test_flags_are_turned_and_dimensions_doubled() -> None:
    call = Call((Tensor((2, 3), "float32"),), {"dim": Literal("(0, 1)"), "keepdim": Literal("False")})
    schema = "aten::thing(Tensor self, int[1]? dim, bool keepdim=False) -> Tensor"
    found = {(limit.name, limit.text) for limit in limits(made(schema, call), call)}
    assert {("keepdim", "True"), ("dim", "(0, -2)"), ("dim", "(0, 2)"), ("dim", "()")} <= found


def test_the_catalogue_has_limits_for_hundreds_of_operators() -> None:
    with_limits = {op.key for op, call in CALLS if limits(op, call)}
    assert len(with_limits) > 300
    for key in ("sum", "topk", "narrow", "roll", "nn.functional.max_pool2d", "nn.functional.conv2d", "diagonal"):
        assert key in with_limits, key
