"""The judge on hand-made facts: each kind, each blind spot of looser oracles, and what must not be flagged."""

from typing import Any

import pytest

from fuzzer.judge import CAST_ELISION, judge, judge_all
from fuzzer.observation import Observation
from fuzzer.verdict import Kind

TENSOR = {"dtype": "float32", "shape": [4], "stride": [1], "offset": 0, "requires_grad": False, "device": "cpu"}


def tensor(**changes: Any) -> dict[str, Any]:
    return {**TENSOR, **changes}


def leaf(path: str = "out", **changes: Any) -> dict[str, Any]:
    """A float32 leaf that is clearly wrong: one element off by 1.0 where eager is exact."""
    facts: dict[str, Any] = {
        "path": path,
        "eager": tensor(),
        "compiled": tensor(),
        "numel": 4,
        "differing": 1,
        "sign_of_zero": 0,
        "nan_mismatch": 0,
        "inf_mismatch": 0,
        "max_abs": 1.0,
        "max_rel": 1.0,
        "reference": "float64",
        "eager_err": 0.5,
        "compiled_err": 8e6,
        "excess_err": 8e6,
        "eager_rmse": 1e-8,
        "compiled_rmse": 0.5,
        "reference_rms": 1.0,
        "compiled_class_wrong": 0,
        "eager_class_wrong": 0,
        "same": False,
    }
    return facts | changes


def fault(message: str, kind: str = "RuntimeError", cause: str = "") -> dict[str, Any]:
    return {"type": kind, "message": message, "cause_type": cause or kind, "cause_message": message, "frames": []}


def seen(
    stages: dict[str, dict[str, Any] | None] | None = None, end: dict[str, Any] | None = None, **facts: Any
) -> Observation:
    """An observation of an execution that went through all stages, but for what is said."""
    stages = {"build": None, "eager": None, "compile": None, "compare": None} if stages is None else stages
    rows = [{"name": name, "seconds": 0.1, "cpu": 0.1, "fault": error} for name, error in stages.items()]
    return Observation.from_map({"stages": rows, "end": {"how": "done", **(end or {})}, **facts})


def test_equal_results_pass() -> None:
    assert judge(seen()).kind is Kind.PASS


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("out", Kind.WRONG_VALUE),
        ("out['a'][1]", Kind.WRONG_VALUE),
        ("grad.in[0]", Kind.WRONG_GRADIENT),
        ("in[0]", Kind.WRONG_MUTATION),
        ("in[0].running_mean", Kind.WRONG_MUTATION),
    ],
)
def test_the_path_of_a_wrong_leaf_decides_the_kind(path: str, kind: Kind) -> None:
    assert judge(seen(leaves=[leaf(path)])).kind is kind


def test_facts_of_another_form_cost_one_program_not_the_campaign() -> None:
    verdict = judge(seen(leaves=["no map"]))
    assert verdict.kind is Kind.HARNESS_ERROR and "unexpected facts" in verdict.reason


class TestWhereTorchsOwnRuleIsBlind:
    """Eight differences that ``torch._dynamo.utils.same`` lets pass (or cannot judge); each must be a suspect."""

    def test_shapes_that_broadcast(self) -> None:
        wrong = leaf(differing=-1, same=True, compiled=tensor(shape=[1, 4], stride=[4, 1]))
        assert judge(seen(leaves=[wrong])).kind is Kind.METADATA

    def test_integers_that_drift_by_less_than_the_tolerance(self) -> None:
        whole = tensor(dtype="int64")
        wrong = leaf(eager=whole, compiled=whole, same=True, eager_err=0.0, compiled_err=1.0, max_abs=1.0)
        assert judge(seen(leaves=[wrong])).kind is Kind.WRONG_VALUE

    def test_promised_strides(self) -> None:
        square = {"shape": [2, 2]}
        other = leaf(differing=0, eager=tensor(**square, stride=[2, 1]), compiled=tensor(**square, stride=[1, 2]))
        assert judge(seen(leaves=[other])).kind is Kind.PASS
        assert judge(seen(leaves=[other]), {"check_stride": True}).kind is Kind.METADATA

    def test_strides_of_size_one_dimensions_are_free(self) -> None:
        ones = {"shape": [1, 3]}
        other = leaf(differing=0, eager=tensor(**ones, stride=[3, 1]), compiled=tensor(**ones, stride=[1, 1]))
        assert judge(seen(leaves=[other]), {"check_stride": True}).kind is Kind.PASS

    def test_requires_grad(self) -> None:
        other = leaf(differing=0, eager=tensor(requires_grad=True))
        assert judge(seen(leaves=[other]), {"mode": "backward"}).kind is Kind.METADATA

    def test_sign_of_zero_is_debatable(self) -> None:
        verdict = judge(seen(leaves=[leaf(differing=0, sign_of_zero=2)]))
        assert verdict.is_suspect and verdict.debatable == "sign of zero"

    def test_one_shared_nan_hides_nothing(self) -> None:
        wrong = leaf(same=True, nan_eager=1, nan_compiled=1)
        assert judge(seen(leaves=[wrong])).kind is Kind.WRONG_VALUE

    def test_nan_where_eager_and_float64_are_finite(self) -> None:
        wrong = leaf(same=True, compiled_class_wrong=1, nan_mismatch=1, excess_err=0.0)
        assert judge(seen(leaves=[wrong])).kind is Kind.WRONG_VALUE

    def test_float8_which_it_cannot_compare(self) -> None:
        short = tensor(dtype="float8_e4m3fn")
        wrong = leaf(eager=short, compiled=short, same=None, excess_err=16.0, compiled_err=16.5)
        assert judge(seen(leaves=[wrong])).kind is Kind.WRONG_VALUE


class TestWhatIsNoFault:
    def test_eager_is_the_less_accurate_side(self) -> None:
        better = leaf(eager_err=50.0, compiled_err=0.5, excess_err=0.0)
        assert judge(seen(leaves=[better])).kind is Kind.PASS

    def test_rounding_noise(self) -> None:
        assert judge(seen(leaves=[leaf(excess_err=10.0, compiled_err=11.0)])).kind is Kind.PASS

    def test_a_tie_between_equal_values(self) -> None:
        whole = tensor(dtype="int64")
        tie = leaf(eager=whole, compiled=whole, gathered_equal=True, compiled_err=1.0, eager_err=0.0)
        assert judge(seen(leaves=[tie])).kind is Kind.PASS

    def test_integers_where_float64_agrees_with_compiled(self) -> None:
        whole = tensor(dtype="int64")
        better = leaf(eager=whole, compiled=whole, compiled_err=0.0, eager_err=1.0)
        assert judge(seen(leaves=[better])).kind is Kind.PASS

    def test_a_leaf_in_which_eager_differs_from_itself(self) -> None:
        verdict = judge(seen(leaves=[leaf()], self_leaves=[leaf()]))
        assert verdict.kind is Kind.FLAKY

    def test_both_sides_refuse_with_other_words(self) -> None:
        both = {"build": None, "eager": fault("shape mismatch"), "compile": fault("cannot broadcast", "TypeError")}
        assert judge(seen(both)).kind is Kind.INVALID

    def test_documented_limits(self) -> None:
        limit = fault("graph break", "torch._dynamo.exc.Unsupported")
        assert judge(seen({"build": None, "eager": None, "compile": limit})).kind is Kind.UNSUPPORTED

    def test_out_of_memory_on_either_side(self) -> None:
        full = fault("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory")
        assert judge(seen({"build": None, "eager": full, "compile": None})).kind is Kind.INVALID
        assert judge(seen({"build": None, "eager": None, "compile": full})).kind is Kind.INVALID


class TestExceptions:
    def test_compile_error(self) -> None:
        error = fault("LoweringException: AssertionError", "torch._inductor.exc.InductorError", "AssertionError")
        verdict = judge(seen({"build": None, "eager": None, "compile": error}))
        assert (verdict.kind, verdict.stage) == (Kind.COMPILE_ERROR, "compile")

    def test_a_check_that_only_the_compiled_program_makes(self) -> None:
        verdict = judge(seen({"build": None, "eager": None, "run": fault("expected size 3")}))
        assert (verdict.kind, verdict.stage) == (Kind.EXTRA_CHECK, "run")

    def test_a_check_that_the_compiled_program_lost(self) -> None:
        verdict = judge(seen({"build": None, "eager": fault("index 9 out of range"), "compile": None}))
        assert verdict.kind is Kind.MISSING_CHECK and "index 9" in verdict.reason

    def test_no_lost_check_where_the_compiled_side_never_ran(self) -> None:
        assert judge(seen({"build": None, "eager": fault("index 9 out of range")})).kind is Kind.INVALID

    def test_internal_assert_of_eager(self) -> None:
        broken = fault("0 INTERNAL ASSERT FAILED at foo.cpp:1, please report a bug to PyTorch.")
        assert judge(seen({"build": None, "eager": broken, "compile": None})).kind is Kind.EAGER_INTERNAL_ASSERT

    def test_a_backward_that_eager_would_refuse_too(self) -> None:
        message = "one of the variables needed for gradient computation has been modified by an inplace operation"
        verdict = judge(seen({"build": None, "eager": None, "compile": fault(message)}))
        assert verdict.kind is Kind.COMPILE_ERROR and verdict.debatable

    @pytest.mark.parametrize(
        "message",
        [
            "more than one element of the written-to tensor refers to a single memory location",
            "While executing unfold, functionalization encountered a tensor being mutated that has internal overlap.",
        ],
    )
    def test_a_write_where_elements_overlap(self, message: str) -> None:
        verdict = judge(seen({"build": None, "eager": None, "compile": fault(message)}))
        assert verdict.kind is Kind.COMPILE_ERROR and verdict.debatable == "writes where elements overlap"

    def test_autograd_refusing_after_a_fork_is_ours(self) -> None:
        message = "Unable to handle autograd's threading in combination with fork-based multiprocessing."
        assert judge(seen({"build": None, "eager": fault(message), "compile": None})).kind is Kind.HARNESS_ERROR

    def test_a_fault_while_comparing_is_ours(self) -> None:
        assert judge(seen({"build": None, "compare": fault("boom")})).kind is Kind.HARNESS_ERROR


class TestEnds:
    @pytest.mark.parametrize(
        ("how", "stage", "kind"),
        [
            ("signal", "run", Kind.CRASH),
            ("signal", "compile", Kind.CRASH),
            ("signal", "backward", Kind.CRASH),
            ("signal", "eager", Kind.EAGER_CRASH),
            ("signal", "build", Kind.INVALID),
            ("timeout", "compile", Kind.HANG),
            ("timeout", "run", Kind.HANG),
            ("timeout", "eager", Kind.INVALID),
            ("memory", "compile", Kind.SLOW_COMPILE),
            ("memory", "eager", Kind.INVALID),
            ("output", "run", Kind.INVALID),
            ("lost", "run", Kind.HARNESS_ERROR),
        ],
    )
    def test_stage_and_way_of_dying_decide(self, how: str, stage: str, kind: Kind) -> None:
        end = {"how": how, "stage": stage, "signal": 11 if how == "signal" else 0}
        assert judge(seen({"build": None}, end)).kind is kind

    def test_a_kill_from_outside_is_no_crash(self) -> None:
        end = {"how": "signal", "stage": "run", "signal": 9}
        assert judge(seen({"build": None}, end)).kind is Kind.HARNESS_ERROR

    def test_a_program_that_leaves_by_itself_is_at_fault(self) -> None:
        assert judge(seen({"build": None}, {"how": "exit", "status": 3, "stage": "run"})).kind is Kind.INVALID


class TestAliases:
    def test_a_result_that_shares_storage_with_an_input_only_when_compiled(self) -> None:
        verdict = judge(seen(aliases={"eager": [], "compiled": [["in[0]", "out"]]}))
        assert verdict.kind is Kind.METADATA and "compiled only" in verdict.reason

    def test_what_is_told_is_a_pair_that_shares_on_one_side_only(self) -> None:
        eager, compiled = [["in[0]", "out[0]", "out[1]"]], [["in[0]", "out[0]"]]
        assert judge(seen(aliases={"eager": eager, "compiled": compiled})).reason.startswith("in[0], out[1] share")
        assert "eager only" in judge(seen(aliases={"eager": eager, "compiled": compiled})).reason

    def test_equal_groups_pass(self) -> None:
        groups = [["in[0]", "out"]]
        assert judge(seen(aliases={"eager": groups, "compiled": groups})).kind is Kind.PASS


def test_the_generator_must_be_left_in_the_same_state_under_fallback_random() -> None:
    assert judge(seen(rng={"equal": False})).kind is Kind.PASS
    assert judge(seen(rng={"equal": False}), {"random": True}).kind is Kind.WRONG_VALUE
    own = {"random": True, "inductor_config": {"fallback_random": False}}
    assert judge(seen(rng={"equal": False}), own).kind is Kind.PASS


def test_a_rounding_that_compilation_left_out_is_debatable() -> None:
    closer = leaf(eager_err=40000.0, compiled_err=0.5, excess_err=0.0)
    assert judge(seen(leaves=[closer])).debatable == CAST_ELISION


def test_zeros_in_place_of_no_gradient_are_debatable() -> None:
    none = {"path": "grad.in[0]", "eager": None, "compiled": tensor(), "differing": 1, "numel": 1, "eager_text": "None"}
    assert judge(seen(leaves=[none | {"only_zeros": True}])).debatable
    assert not judge(seen(leaves=[none | {"only_zeros": False}])).debatable


def test_a_result_beyond_its_storage_is_wrong() -> None:
    assert judge(seen(leaves=[leaf(outside_storage=True)])).kind is Kind.WRONG_VALUE


def test_every_wrong_leaf_is_told_the_worst_kind_first() -> None:
    verdicts = judge_all(seen(leaves=[leaf("grad.in[0]"), leaf("out")]), {})
    assert [verdict.kind for verdict in verdicts] == [Kind.WRONG_VALUE, Kind.WRONG_GRADIENT]


def test_the_second_call_is_judged_like_the_first() -> None:
    assert judge(seen(second_leaves=[leaf()])).stage == "second"
    stages = {"build": None, "eager": None, "compile": None, "second_eager": None, "second": fault("guard failed")}
    assert judge(seen(stages)).kind is Kind.COMPILE_ERROR


def test_eager_that_accepts_what_it_ought_to_refuse() -> None:
    assert judge(seen(), {"expect_eager": "error"}).kind is Kind.MISSING_CHECK
    refused = seen({"build": None, "eager": fault("no"), "compile": fault("no")})
    assert judge(refused, {"expect_eager": "error"}).kind is Kind.INVALID


def test_numpy_code_that_only_the_compiler_differentiates_is_debatable() -> None:
    words = "RuntimeError: Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
    verdict = judge(seen({"build": None, "eager": fault(words), "compile": None}))
    assert verdict.kind is Kind.MISSING_CHECK and verdict.debatable


@pytest.mark.parametrize("largest", [0.5, float("inf"), float("nan")])
def test_promised_zeros(largest: float) -> None:
    assert judge(seen(eager_zero=0.0)).kind is Kind.PASS
    assert judge(seen(eager_zero=largest)).kind is Kind.WRONG_VALUE


def test_exceptions_of_another_class_count_only_where_promised() -> None:
    both = seen({"build": None, "eager": fault("no", "ValueError"), "compile": fault("no", "KeyError")})
    assert judge(both).kind is Kind.INVALID
    assert judge(both, {"same_exc": True}).kind is Kind.COMPILE_ERROR
    wrapped = fault("no", "torch._dynamo.exc.TorchRuntimeError", "ValueError")
    both = seen({"build": None, "eager": fault("no", "ValueError"), "compile": wrapped})
    assert judge(both, {"same_exc": True}).kind is Kind.INVALID


def test_the_default_random_path_is_judged_by_what_does_not_depend_on_numbers() -> None:
    stages: dict[str, Any] = {"build": None, "eager": fault("empty range"), "compile": fault("empty range")}
    both_refuse = judge(seen({**stages, "random_path": fault("empty range")}))
    assert both_refuse.kind is Kind.INVALID
    lost = judge(seen({**stages, "random_path": None}))
    assert lost.kind is Kind.MISSING_CHECK and lost.details["random_path"]
    shape = leaf(compiled=tensor(shape=[1]), differing=-1, reference="none: other shape")
    other = judge(seen(random_leaves=[shape]))
    assert other.kind is Kind.METADATA and other.details["random_path"]


def test_what_a_cpp_compiler_says_is_told_not_how_it_was_called() -> None:
    said = (
        "CppCompileError: C++ compile error\n\nCommand:\ng++ x.main.cpp -O3\n\nOutput:\nx.main.cpp:9:5: error: no match"
    )
    stages = {"build": None, "eager": None, "compile": {**fault(said), "cause_message": "Command '['g++']' failed"}}
    assert judge(seen(stages)).reason == "C++ compiler: no match"
