import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.finding import Finding
from fuzzer.grouping import Decisions, distance, frame_distance, group
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

FRAMES = ["torch/a.py:outer", "torch/b.py:middle", "torch/c.py:lower", "torch/d.py:inner"]


def silent(major, operators, backend="inductor", text="x" * 9, needed=(), **triage):
    triage = {"backend": backend, "essential_features": list(needed), **triage}
    facts = {"operators": [f"aten.{name}.default" for name in operators]}
    return Finding(Signature(major, ""), Kind.WRONG_VALUE, text, stage="run", facts=facts, triage=triage)


def loud(major, frames, message="cannot lower this", kind="ValueError"):
    fault = {"type": kind, "cause_type": kind, "message": message, "frames": frames}
    return Finding(
        Signature(major, message), Kind.COMPILE_ERROR, "text", stage="compile", facts={"faults": {"compile": fault}}
    )


def members(groups):
    return sorted(sorted(item.members) for item in groups)


def test_silent_faults_group_by_backend_operators_and_features():
    found = [
        silent("a", ["argmin", "t", "add"]),
        silent("b", ["argmin", "add", "clone"], text="x"),
        silent("c", ["cumsum"]),
        silent("d", ["argmin", "add"], backend="decomp"),
        silent("e", ["cumsum"], needed=["dtype=uint8"]),
        silent("f", ["cumsum"], needed=["mode=dynamic"]),
    ]
    groups = group(found)
    assert ["a", "b"] in members(groups) and ["d"] in members(groups)
    assert next(item for item in groups if "a" in item.members).representative == "b"
    assert distance(found[4], found[5]) > distance(found[2], found[4])


def test_what_torchs_bisector_named_decides():
    one, other = ({"subsystem": "lowerings", "what": f"argmin_{number}"} for number in (1, 7))
    assert distance(silent("a", ["x"], bisect=one), silent("b", ["y"], bisect=other)) == 0.0
    assert distance(silent("a", ["x"], bisect=one), silent("b", ["x"], bisect={**one, "what": "amax"})) == 1.0


def test_a_pass_of_the_compiler_may_have_several_bugs():
    named = {"bisect": {"subsystem": "post_grad_passes", "what": "reinplace_inplaceable_ops"}}
    one, other = silent("a", ["index_add", "elu"], **named), silent("b", ["index_add"], **named)
    assert distance(one, other) < distance(one, silent("c", ["copy_", "clone"], **named))
    assert members(group([one, silent("c", ["copy_"], **named)])) == [["a"], ["c"]]


def test_a_wrong_value_that_is_returned_and_one_that_is_written_are_of_one_bug():
    returned = silent("a", ["addcmul"], backend="dynamo")
    written = replace(silent("b", ["addcmul"], backend="dynamo"), kind=Kind.WRONG_MUTATION)
    gradient = replace(silent("c", ["addcmul"], backend="dynamo"), kind=Kind.WRONG_GRADIENT)
    assert members(group([returned, written, gradient])) == [["a", "b"], ["c"]]


def test_a_decomposition_without_checks_is_one_bug():
    named = {"bisect": {"subsystem": "decomposition", "what": "<OpOverload(op='aten.native_batch_norm')>"}}

    def unchecked(major, message, operators=("native_batch_norm",), **triage):
        made = replace(silent(major, operators, **triage), kind=Kind.MISSING_CHECK)
        return replace(made, signature=Signature(major, message))

    found = [
        unchecked("a", "expected one element", **named),
        unchecked("b", "expected DTYPE", **named),
        unchecked("c", "cannot cast Float to Int", ["addcmul"]),
        unchecked("d", "cannot cast Float to Long", ["addcmul"]),
        unchecked("e", "cannot cast Float to Long", ["addcdiv"]),
    ]
    assert members(group(found)) == [["a", "b"], ["c", "d"], ["e"]]


def test_refusals_group_by_their_innermost_frames():
    found = [
        loud("a", FRAMES),
        loud("b", ["torch/z.py:other", *FRAMES[1:]]),
        loud("c", [*FRAMES[:3], "torch/e.py:elsewhere"]),
        loud("d", FRAMES, kind="KeyError"),
        loud("e", FRAMES, message="completely different words about strides"),
    ]
    assert members(group(found)) == [["a", "b"], ["c"], ["d"], ["e"]]


def test_one_place_that_raises_for_many_reasons_is_several_bugs():
    dynamo = "failed with fake tensors: call_function <built-in method {0}>(*(x,), **{{}}): got RuntimeError('{1}')"
    one = loud("a", FRAMES, dynamo.format("matmul", "a and b must have same reduction dim"))
    other = loud("b", FRAMES, dynamo.format("dropout", "complex dtypes have no automatic differentiation"))
    again = loud("c", FRAMES, dynamo.format("matmul", "a and b must have same reduction dim, but got [3, 4]"))
    assert members(group([one, other, again])) == [["a", "c"], ["b"]]


def test_what_follows_from_a_wrong_shape_of_a_decomposition_is_the_same_bug():
    named = {"bisect": {"subsystem": "decomposition", "what": "<OpOverload(op='aten.rrelu')>"}}
    shape = replace(
        silent("a", ["rrelu"], **named), kind=Kind.METADATA, reason="out: shape is [1] in eager, [0] compiled"
    )
    follows = [
        replace(loud("b", FRAMES, "index 0 is out of bounds"), triage=named),
        replace(silent("c", ["rrelu", "index_add"], **named), kind=Kind.MISSING_CHECK),
    ]
    other = silent("d", ["rrelu"], bisect={**named["bisect"], "what": "<OpOverload(op='aten.celu')>"})
    assert members(group([shape, *follows, other])) == [["a", "b", "c"], ["d"]]
    assert members(group([shape, *follows, other], Decisions().alone("b"))) == [["a", "c"], ["b"], ["d"]]
    strided = replace(shape, reason="out: stride is [1] in eager, [0] compiled")
    assert members(group([strided, *follows])) == [["a"], ["b"], ["c"]]


def test_what_the_cpp_compiler_refuses_is_told_apart_by_its_words():
    def refused(major, said):
        return loud(major, FRAMES, f"CppCompileError: C++ compile error\n\nCommand:\ng++ x.cpp -O3 -DNDEBUG\n{said}")

    found = [
        refused("a", "x.cpp:1:2: error: invalid cast from type Vectorized to type Float8 in all"),
        refused("b", "x.cpp:9:9: error: no matching function for call to max_masked_reduce"),
        refused("c", "x.cpp:77:3: error: no matching function for call to max_masked_reduce"),
    ]
    assert members(group(found)) == [["a"], ["b", "c"]]


def test_debatable_ones_keep_apart_from_bugs():
    plain = silent("a", ["sin"])
    odd = Finding(Signature("b", ""), Kind.WRONG_VALUE, "t", debatable="casts", facts=plain.facts, triage=plain.triage)
    assert distance(plain, odd) == 1.0


stacks = st.lists(st.sampled_from(FRAMES), max_size=10)


@given(stacks, stacks)
def test_frame_distance_is_symmetric_bounded_and_zero_for_equals(one, other):
    assert 0.0 <= frame_distance(one, other) <= 1.0
    assert frame_distance(one, other) == pytest.approx(frame_distance(other, one))
    assert not one or frame_distance(one, one) == 0.0


def test_inner_frames_weigh_more():
    changed_inside, changed_outside = [*FRAMES[:3], "x"], ["x", *FRAMES[1:]]
    assert frame_distance(FRAMES, changed_inside) > 2 * frame_distance(FRAMES, changed_outside)


@given(
    st.permutations(range(5)), st.lists(st.tuples(st.booleans(), st.sampled_from("abcde"), st.sampled_from("abcde")))
)
def test_groups_partition_whatever_a_person_says(order, said):
    names = ["argmin", "argmin", "sum", "sum", "cat"]
    found = [silent("abcde"[number], [names[number]]) for number in order]
    decisions = Decisions()
    for merge, one, other in said:
        decisions = decisions.merge([one, other]) if merge and one != other else decisions.alone(one)
    groups = group(found, decisions)
    assert sorted(itertools.chain(*(item.members for item in groups))) == list("abcde")
    assert members(groups) == members(group(sorted(found, key=lambda item: item.signature.major), decisions))
    of = {member: item for item in groups for member in item.members}
    for together in decisions.merged:
        assert len({of[major].representative for major in together}) == 1
    assert Decisions.from_map(decisions.to_map()) == Decisions(
        tuple(sorted(decisions.merged, key=sorted)), decisions.split
    )


def test_a_persons_word_outlives_the_automatic_one():
    found = [silent("a", ["argmin"]), silent("b", ["argmin"]), silent("c", ["sum"])]
    decisions = Decisions().alone("b").merge(["a", "c"])
    assert members(group(found, decisions)) == [["a", "c"], ["b"]]
    assert members(group(found, decisions.merge(["b", "a"]))) == [["a", "b", "c"]]
    assert members(group(found, decisions.merge(["b", "a"]).alone("a"))) == [["a"], ["b", "c"]]


@pytest.mark.parametrize(
    "plain", [{}, [], {"format": 1}, {"format": 99}, {"format": 1, "merged": [["a"]], "split": []}]
)
def test_damaged_groups_are_refused(plain):
    with pytest.raises(ValueError):
        Decisions.from_map(plain)
