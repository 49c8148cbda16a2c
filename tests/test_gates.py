"""The gates: each innocent explanation is recognised, and nothing else is dismissed by it."""

from dataclasses import replace
from typing import Any

import pytest
from test_judge import fault, leaf, seen, tensor

from fuzzer.gates import GATES, Gate, Suspect, apply_gate
from fuzzer.judge import CAST_ELISION, judge
from fuzzer.observation import Observation
from fuzzer.verdict import Kind


def gate(name: str) -> Gate:
    return next(item for item in GATES if item.name == name)


def suspect(observation: Observation, meta: dict[str, Any] | None = None, text: str = "") -> Suspect:
    return Suspect(judge(observation, meta), observation, meta or {}, text)


def ops(*names: str, dtype: str = "float32", **facts: Any) -> list[dict[str, Any]]:
    row = [dtype, [4], [1], 0]
    return [{"op": f"aten.{name}.default", "inputs": [], "tensors": [row], "outputs": [row], **facts} for name in names]


class TestUndefined:
    def test_uninitialised_memory_that_the_program_reads_is_dismissed(self) -> None:
        wrong = seen(leaves=[leaf()], ops=ops("empty", undefined="uninitialised memory"))
        after, alive = apply_gate(suspect(wrong, text="c = torch.empty(3)"), gate("undefined behaviour"), seen())
        assert not alive and after.verdict.kind is Kind.PASS

    def test_memory_that_operators_allocate_for_themselves_excuses_nothing(self) -> None:
        wrong = seen(leaves=[leaf()], ops=ops("empty_like", undefined="uninitialised memory"))
        _after, alive = apply_gate(suspect(wrong, text="c = F.dropout(a)"), gate("undefined behaviour"), seen())
        assert alive

    def test_undefined_conversion_is_debatable(self) -> None:
        undefined = ops("_to_copy", undefined="float to integer out of range")
        after, alive = apply_gate(suspect(seen(leaves=[leaf()], ops=undefined)), gate("undefined behaviour"), seen())
        assert alive and "out of range" in after.verdict.debatable

    def test_a_backward_operator_called_by_hand_is_debatable(self) -> None:
        text = "return torch.ops.aten.cumprod_backward(g, x, 1, o)"
        after, alive = apply_gate(suspect(seen(leaves=[leaf()]), text=text), gate("undefined behaviour"), seen())
        assert alive and "cumprod_backward" in after.verdict.debatable


def test_float64_is_no_reference_for_random_numbers() -> None:
    drawn = leaf(same=True, reference="float64", reference_rms=0.5, eager_rmse=0.4, compiled_rmse=0.5)
    _after, alive = apply_gate(suspect(seen(leaves=[drawn], ops=ops("rand"))), gate("PyTorch's accuracy rule"), seen())
    assert alive
    _after, alive = apply_gate(suspect(seen(leaves=[drawn], ops=ops("sin"))), gate("PyTorch's accuracy rule"), seen())
    assert not alive


def test_a_refusal_of_what_eager_reads_beyond_is_debatable() -> None:
    stages = {"build": None, "eager": None, "compile": fault("expand")}
    refused = suspect(seen(stages, ops=ops("native_batch_norm", undefined="reads beyond its arguments")))
    asked = gate("reads beyond")
    assert refused.verdict.kind is Kind.COMPILE_ERROR and asked.applies(refused)
    assert apply_gate(refused, asked, seen())[0].verdict.debatable
    assert not asked.applies(suspect(seen(stages, ops=ops("native_batch_norm"))))


def test_what_runs_a_finding_as_a_script_is_not_the_program() -> None:
    main = '\nif __name__ == "__main__":\n    try:\n        torch.empty(3)\n    except AssertionError:\n        pass\n'
    stages = {"build": None, "eager": None, "compile": fault("RuntimeError when making fake tensor call")}
    asked = gate("caught exceptions")
    assert not asked.applies(suspect(seen(stages), text="def fn(a):\n    return a\n" + main))
    own = "def fn(a):\n    try:\n        return a.view(3)\n    except RuntimeError:\n        return a\n"
    assert asked.applies(suspect(seen(stages), text=own + main))


class TestRounding:
    def test_what_rounding_alone_can_do_is_dismissed(self) -> None:
        small = suspect(seen(leaves=[leaf(same=True, max_abs=1e-16)], ops=ops("exp", dtype="float64")))
        asked = gate("rounding")
        assert asked.applies(small)
        assert not apply_gate(small, asked, seen(rounded_leaves=[leaf(max_abs=2e-16)]))[1]
        assert apply_gate(small, asked, seen(rounded_leaves=[leaf(max_abs=1e-18)]))[1]
        assert apply_gate(small, asked, seen(rounded_leaves=[leaf("other", max_abs=1.0)]))[1]

    def test_the_first_call_excuses_nothing_of_the_second(self) -> None:
        second = suspect(seen(second_leaves=[leaf(same=True)], ops=ops("exp")))
        assert second.verdict.stage == "second" and not gate("rounding").applies(second)

    def test_neither_what_pytorch_rejects_is_asked_nor_short_floats(self) -> None:
        assert not gate("rounding").applies(suspect(seen(leaves=[leaf(same=True)], ops=ops("exp", dtype="float16"))))
        assert not gate("rounding").applies(suspect(seen(leaves=[leaf(same=False)], ops=ops("exp"))))


class TestRecomputation:
    def test_an_infinity_that_two_roundings_of_one_value_explain_is_debatable(self) -> None:
        odd = suspect(seen(leaves=[leaf(same=False, inf_mismatch=1)], ops=ops("exp2")))
        asked = gate("recomputation")
        assert asked.applies(odd)
        for fact in "rounded_leaves", "recomputed_leaves":
            judged, alive = apply_gate(odd, asked, seen(**{fact: [leaf(inf_mismatch=1)]}))
            assert alive and judged.verdict.debatable.startswith("follows from rounding")
        judged, alive = apply_gate(odd, asked, seen(rounded_leaves=[leaf("other", inf_mismatch=1)]))
        assert alive and not judged.verdict.debatable

    def test_short_floats_and_ordinary_numbers_are_not_asked(self) -> None:
        short = seen(leaves=[leaf(same=False, nan_mismatch=1)], ops=ops("exp", dtype="bfloat16"))
        assert not gate("recomputation").applies(suspect(short))
        assert not gate("recomputation").applies(suspect(seen(leaves=[leaf(same=False)], ops=ops("exp"))))


class TestUnexpectedFacts:
    def test_a_value_that_only_the_compiled_side_made_has_no_dtype(self) -> None:
        one = suspect(seen(leaves=[leaf(eager=None)], ops=ops("max")))
        _after, alive = apply_gate(one, gate("ties"), seen())
        assert alive and one.dtype == ""

    def test_a_gate_that_stumbles_is_recorded_and_dismisses_nothing(self) -> None:
        def stumble(_suspect: Suspect, _again: Observation) -> str:
            raise KeyError("max_abs")

        broken = Gate("broken", lambda item: item.leaf["no such fact"], None, stumble)
        one = suspect(seen(leaves=[leaf()]))
        assert not broken.is_asked(one)
        after, alive = apply_gate(one, broken, seen())
        assert alive and after.verdict.gates[-1] == ("broken", "not run: unexpected facts (KeyError: 'max_abs')")


class TestAccuracyRule:
    def test_within_the_rule_is_dismissed(self) -> None:
        small = leaf(same=True, compiled_rmse=1e-6)
        _after, alive = apply_gate(suspect(seen(leaves=[small])), gate("PyTorch's accuracy rule"), seen())
        assert not alive

    def test_small_magnitudes_where_the_rule_is_blind_are_kept(self) -> None:
        tiny = leaf(same=True, compiled_rmse=5e-7, reference_rms=1e-6)
        _after, alive = apply_gate(suspect(seen(leaves=[tiny])), gate("PyTorch's accuracy rule"), seen())
        assert alive

    def test_nan_on_the_wrong_side_is_kept(self) -> None:
        wrong = leaf(same=True, compiled_class_wrong=1, compiled_rmse=0.0)
        _after, alive = apply_gate(suspect(seen(leaves=[wrong])), gate("PyTorch's accuracy rule"), seen())
        assert alive

    def test_where_equality_is_promised_the_rule_makes_it_debatable(self) -> None:
        exact = suspect(seen(leaves=[leaf(same=True, compiled_rmse=1e-6)]), {"exact": True})
        after, alive = apply_gate(exact, gate("PyTorch's accuracy rule"), seen())
        assert alive and after.verdict.debatable


class TestIllConditioned:
    def test_dismissed_when_eager_moves_as_much(self) -> None:
        again = seen(perturbed_leaves=[leaf(max_abs=0.5)])
        _after, alive = apply_gate(suspect(seen(leaves=[leaf()])), gate("ill-conditioned"), again)
        assert not alive

    def test_kept_when_eager_stays(self) -> None:
        again = seen(perturbed_leaves=[leaf(max_abs=1e-6)])
        _after, alive = apply_gate(suspect(seen(leaves=[leaf()])), gate("ill-conditioned"), again)
        assert alive

    def test_an_index_that_eager_itself_changes_is_dismissed(self) -> None:
        whole = tensor(dtype="int64")
        wrong = leaf(eager=whole, compiled=whole, eager_err=0.0, compiled_err=1.0)
        wrong.pop("max_rel"), wrong.pop("eager_rmse")
        moved, still = seen(perturbed_leaves=[wrong]), seen(perturbed_leaves=[leaf("other")])
        assert not apply_gate(suspect(seen(leaves=[wrong])), gate("ill-conditioned"), moved)[1]
        assert apply_gate(suspect(seen(leaves=[wrong])), gate("ill-conditioned"), still)[1]


class TestCastElision:
    def test_a_difference_that_emulated_casts_remove_is_debatable(self) -> None:
        after, alive = apply_gate(suspect(seen(leaves=[leaf()])), gate("cast elision"), seen())
        assert alive and after.verdict.debatable == CAST_ELISION

    def test_one_that_stays_is_kept_as_it_is(self) -> None:
        after, alive = apply_gate(suspect(seen(leaves=[leaf()])), gate("cast elision"), seen(leaves=[leaf()]))
        assert alive and not after.verdict.debatable

    def test_nan_is_never_excused_by_it(self) -> None:
        wrong = seen(leaves=[leaf(compiled_class_wrong=1)])
        after, alive = apply_gate(suspect(wrong), gate("cast elision"), seen())
        assert alive and not after.verdict.debatable

    def test_it_is_asked_only_where_short_floats_ran(self) -> None:
        wide = suspect(seen(leaves=[leaf()], ops=ops("sin")))
        short = suspect(seen(leaves=[leaf()], ops=ops("sin", dtype="bfloat16")))
        assert not gate("cast elision").applies(wide)
        assert gate("cast elision").applies(short)


class TestCaughtExceptions:
    def test_an_exception_that_the_program_catches_is_debatable(self) -> None:
        error = fault(
            "RuntimeError when making fake tensor call: got RuntimeError()", "torch._dynamo.exc.TorchRuntimeError"
        )
        observation = seen({"build": None, "eager": None, "compile": error})
        catching = suspect(observation, text="def fn(a):\n    try:\n        b = a @ a\n    except RuntimeError: ...")
        assert gate("caught exceptions").applies(catching)
        assert apply_gate(catching, gate("caught exceptions"), seen())[0].verdict.debatable
        assert not gate("caught exceptions").applies(suspect(observation, text="def fn(a):\n    return a @ a"))


class TestRandom:
    DRAWING = ops("rand_like")

    def test_asked_only_where_random_operators_ran(self) -> None:
        assert gate("random numbers").applies(suspect(seen(leaves=[leaf()], ops=self.DRAWING)))
        assert not gate("random numbers").applies(suspect(seen(leaves=[leaf()], ops=ops("sin"))))

    def test_equal_with_fallback_random_is_dismissed(self) -> None:
        assert not apply_gate(suspect(seen(leaves=[leaf()], ops=self.DRAWING)), gate("random numbers"), seen())[1]

    def test_another_order_of_the_same_numbers_is_debatable(self) -> None:
        drawing = suspect(seen(leaves=[leaf()], ops=self.DRAWING))
        after, alive = apply_gate(drawing, gate("random numbers"), seen(leaves=[leaf()]))
        assert alive and "order" in after.verdict.debatable

    def test_nan_is_not_excused_by_random_numbers(self) -> None:
        wrong = leaf(compiled_class_wrong=3)
        drawing = suspect(seen(leaves=[wrong], ops=self.DRAWING))
        after, alive = apply_gate(drawing, gate("random numbers"), seen(leaves=[wrong]))
        assert alive and not after.verdict.debatable


@pytest.mark.parametrize("item", GATES, ids=lambda item: item.name)
def test_every_outcome_is_recorded(item: Gate) -> None:
    after, _alive = apply_gate(suspect(seen(leaves=[leaf()])), item, seen())
    assert after.verdict.gates[-1][0] == item.name


def test_what_is_gone_when_run_again_is_dismissed() -> None:
    assert not apply_gate(suspect(seen(leaves=[leaf()])), gate("persists"), seen())[1]


def test_a_dismissal_keeps_the_earlier_gates() -> None:
    start = suspect(seen(leaves=[leaf()]))
    start = replace(start, verdict=replace(start.verdict, gates=(("first", "kept"),)))
    after, _alive = apply_gate(start, gate("persists"), seen())
    assert [name for name, _ in after.verdict.gates] == ["first", "persists"]


def test_a_sum_that_cancels_is_judged_by_what_it_added_up() -> None:
    cancelling = [{"op": "aten.sum.default", "cancellation": 1.8e5, "tensors": [["float32", [9], [1], 0]]}]
    small = leaf(max_abs=0.036, reference_rms=1.65)
    after, alive = apply_gate(suspect(seen(leaves=[small], ops=cancelling)), gate("cancellation"), seen())
    assert not alive and "cancels" in after.verdict.reason
    large = leaf(max_abs=1.6, reference_rms=1.65)
    assert apply_gate(suspect(seen(leaves=[large], ops=cancelling)), gate("cancellation"), seen())[1]
    plain = [{**cancelling[0], "cancellation": 3.0}]
    assert apply_gate(suspect(seen(leaves=[small], ops=plain)), gate("cancellation"), seen())[1]


class TestIndexAmongTies:
    def test_what_eager_changes_with_the_tie_is_debatable(self) -> None:
        behind, ties = suspect(seen(leaves=[leaf()], ops=ops("argmin"))), gate("ties")
        assert ties.applies(behind)
        after, alive = apply_gate(behind, ties, seen(tied_leaves=[leaf()]))
        assert alive and "ties" in after.verdict.debatable

    def test_what_eager_keeps_is_not(self) -> None:
        after, alive = apply_gate(
            suspect(seen(leaves=[leaf()], ops=ops("argmin"))), gate("ties"), seen(tied_leaves=[leaf("other")])
        )
        assert alive and not after.verdict.debatable

    def test_asked_only_where_an_index_was_computed_and_is_not_the_result_itself(self) -> None:
        assert not gate("ties").applies(suspect(seen(leaves=[leaf()], ops=ops("sin"))))
        assert not gate("ties").applies(suspect(seen(leaves=[leaf(gathered_equal=False)], ops=ops("argmin"))))


class TestSizesThatValuesDecide:
    def shrunk(self, **facts: Any) -> Observation:
        empty = {**tensor(), "shape": [0]}
        return seen(leaves=[{"path": "out", "eager": tensor(), "compiled": empty}], **facts)

    def test_a_size_that_one_rounding_decides_is_debatable(self) -> None:
        one = suspect(self.shrunk(ops=ops("masked_select", dtype="float16")))
        assert one.verdict.kind is Kind.METADATA and gate("cast elision").applies(one)
        after, alive = apply_gate(one, gate("cast elision"), seen())
        assert alive and after.verdict.debatable == CAST_ELISION

    def test_a_size_that_a_nudge_of_the_inputs_changes_is_dismissed(self) -> None:
        one = suspect(self.shrunk(ops=ops("nonzero")))
        moved = seen(perturbed_leaves=[{"path": "out", "eager": tensor(), "compiled": {**tensor(), "shape": [2]}}])
        assert not apply_gate(one, gate("ill-conditioned"), moved)[1]
        assert apply_gate(one, gate("ill-conditioned"), seen(perturbed_leaves=[leaf(differing=0)]))[1]

    def test_without_such_an_operator_a_wrong_shape_is_wrong(self) -> None:
        one = suspect(self.shrunk(ops=ops("sum", dtype="float16")))
        assert not any(
            gate(name).applies(one) for name in ("cast elision", "ill-conditioned", "random numbers", "ties")
        )


def test_a_draw_that_nothing_reads_may_be_left_out() -> None:
    drawn = seen(rng={"equal": False})
    head = "def fn(a):\n    b = torch.nn.functional.dropout2d(a)\n    return "
    asked = gate("unread draw")
    unread = suspect(drawn, {"random": True}, text=head + "a\n")
    assert unread.verdict.kind is Kind.WRONG_VALUE
    after, alive = apply_gate(unread, asked, seen())
    assert alive and "nothing reads" in after.verdict.debatable
    assert asked.is_asked(unread)
    assert not asked.is_asked(suspect(drawn, {"random": True}, text=head + "b\n"))
    other = suspect(seen(leaves=[leaf(same=False)]), text=head + "a\n")
    assert not asked.is_asked(other)


def test_a_dropout_that_returns_its_argument_is_debatable() -> None:
    shared = seen(aliases={"eager": [["in[0]", "out"]], "compiled": []})
    code = "def fn(a):\n    return torch.nn.functional.{}\n"
    asked = gate("identity")
    after, alive = apply_gate(suspect(shared, text=code.format("dropout(a, p=0.0)")), asked, seen())
    assert alive and "dropout" in after.verdict.debatable
    assert asked.is_asked(suspect(shared, text=code.format("AlphaDropout(0.5).eval()(a)")))
    assert not asked.is_asked(suspect(shared, text=code.format("relu(a)")))
    other = seen(aliases={"eager": [], "compiled": [["in[0]", "out"]]})
    assert not asked.is_asked(suspect(other, text=code.format("dropout(a, p=0.0)")))


def test_a_refusal_that_only_an_unread_line_carries_is_debatable() -> None:
    head = "def fn(a):\n    n = torch.normal(a, a)\n    return "
    stages = {"build": None, "eager": {**fault("normal"), "line": 2}, "compile": None, "run": None}
    after, alive = apply_gate(suspect(seen(stages), text=head + "a\n"), gate("unread line"), seen())
    assert alive and "nothing reads" in after.verdict.debatable
    assert gate("unread line").is_asked(suspect(seen(stages), text=head + "a\n"))
    assert not gate("unread line").is_asked(suspect(seen(stages), text=head + "n\n"))
