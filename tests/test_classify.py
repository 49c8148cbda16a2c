import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.classify import SYMPTOMS, classify
from fuzzer.finding import Finding, State
from fuzzer.knowledge.issues import CAUSES, TASKS, UNKNOWN
from fuzzer.nearest import search_words
from fuzzer.signature import Signature
from fuzzer.verdict import Kind

PLAIN = "import torch\n\n\ndef build_inputs():\n    return (torch.randn(3),)\n\n\ndef fn(x):\n    return x\n"


def finding(kind, **changes):
    values = {"signature": Signature("m", ""), "kind": kind, "text": PLAIN, "stage": "run", "reason": "",
              "facts": {}, "triage": {}}  # fmt: skip
    values.update(changes)
    return Finding(**values)


def fault(message, stage="compile", frames=(), name="torch._inductor.exc.InductorError"):
    said = {"type": name, "message": message, "cause_type": "", "cause_message": "", "frames": list(frames)}
    return {"faults": {stage: said}}


def leaf(dtype="float32", shape=(3,), **facts):
    eager = {"dtype": dtype, "shape": list(shape), "stride": [1]}
    return {"leaves": [{"path": "out", "numel": 3, "eager": eager, "compiled": dict(eager), **facts}]}


def program(*lines):
    return PLAIN.replace("    return x\n", "".join(f"    {line}\n" for line in lines))


LATE = program("y = x.clone()", "x.zero_()", "return y")


@pytest.mark.parametrize("item, symptom", [
    (finding(Kind.EAGER_CRASH, stage="eager"), "eager_defect"),
    (finding(Kind.MISSING_CHECK, stage="eager"), "eager_defect"),
    (finding(Kind.CRASH, triage={"backend": "dynamo"}), "eager_defect"),
    (finding(Kind.CRASH, triage={"backend": "inductor"}), "crash"),
    (finding(Kind.HANG, stage="compile"), "hang_recursion"),
    (finding(Kind.COMPILE_ERROR, stage="compile", facts=fault("RecursionError: maximum recursion depth exceeded")),
     "hang_recursion"),
    (finding(Kind.COMPILE_ERROR, stage="compile", facts=fault("no lowering")), "compile_error"),
    (finding(Kind.WRONG_VALUE, text=LATE), "mutation"),
    (finding(Kind.WRONG_VALUE, text=LATE, triage={"free_features": ["mutation=inplace"]}), "wrong_value"),
    (finding(Kind.WRONG_MUTATION), "mutation"),
    (finding(Kind.WRONG_VALUE), "wrong_value"),
    (finding(Kind.WRONG_VALUE, text=program("return x.requires_grad"),
             facts={"leaves": [{"path": "out", "eager": None, "eager_text": "True", "compiled_text": "False"}]}),
     "metadata"),
    (finding(Kind.WRONG_GRADIENT), "gradient"),
    (finding(Kind.METADATA), "metadata"),
    (finding(Kind.EXTRA_CHECK), "extra_check"),
])  # fmt: skip
def test_symptoms(item, symptom):
    found = classify(item).symptom
    assert found.name == symptom and len(found.reasons) == 1


@pytest.mark.parametrize("item, task, cause, why", [
    (finding(Kind.MISSING_CHECK, facts=fault("not implemented for 'Float'", "eager"), triage={"backend": "decomp"}),
     "operator_mapping", "missing_test", "not implemented for 'Float'"),
    (finding(Kind.MISSING_CHECK, facts=fault("index -1 is out of bounds", "eager"), triage={"backend": "decomp"}),
     "attribute_handling", "boundary", "eager checks an argument"),
    (finding(Kind.COMPILE_ERROR, stage="compile", facts=fault("CppCompileError: error: 'x' was not declared")),
     "code_generation", "semantics_misaligned", "C++ compiler refuses"),
    (finding(Kind.COMPILE_ERROR, stage="compile", facts=fault("expected size 4==4, stride 1==4 at dim=0", "compile")),
     "shape_inference", "semantics_misaligned", "expected size 4==4, stride"),
    (finding(Kind.COMPILE_ERROR, stage="compile", facts=fault("MissingOperatorWithDecomp: x")),
     "unsupported_operator", "semantics_misaligned", "MissingOperator"),
    (finding(Kind.WRONG_VALUE, facts=leaf(max_rel=1e-3), debatable="cast elision"),
     "folding_precision", "semantics_misaligned", "cast elision"),
    (finding(Kind.WRONG_VALUE, facts=leaf(nan_mismatch=1, nan_eager=1), triage={"backend": "decomp"}),
     "folding_precision", "boundary", "NaN or infinity"),
    (finding(Kind.WRONG_VALUE, text=LATE, triage={"backend": "inductor"}),
     "memory_layout", "semantics_misaligned", "x.zero_()"),
    (finding(Kind.WRONG_VALUE, triage={"essential_features": ["layout=transposed"], "backend": "inductor"}),
     "memory_layout", "semantics_misaligned", "needs layout=transposed"),
    (finding(Kind.WRONG_VALUE, text=program("return torch.cond(x, a, b)"), triage={"backend": "dynamo"}),
     "control_flow", "semantics_misaligned", "torch.cond"),
    (finding(Kind.CRASH, facts={"end": {"how": "signal", "signal": 8}}, triage={"backend": "inductor"}),
     "code_generation", "boundary", "dies in stage run"),
])  # fmt: skip
def test_tasks_and_causes_come_with_reasons(item, task, cause, why):
    found = classify(item)
    assert (found.task.name, found.cause.name) == (task, cause)
    assert any(why in reason for reason in found.task.reasons) and all(found.cause.reasons)


@pytest.mark.parametrize("versions, cause", [
    ({"2.5.1": "pass", "2.13.0": "wrong_value"}, "version_drift"),
    ({"2.5.1": "wrong_value", "2.13.0": "pass", "2.14.0": "wrong_value"}, "narrow_fix"),
    ({"2.5.1": "wrong_value", "2.13.0": "pass"}, "semantics_misaligned"),
])  # fmt: skip
def test_releases_tell_of_drift_and_of_fixes_that_did_not_hold(versions, cause):
    assert classify(finding(Kind.WRONG_VALUE, triage={"versions": versions})).cause.name == cause


def test_a_class_is_plain_data_marked_as_unverified():
    item = finding(Kind.WRONG_VALUE, text=LATE, state=State.CONFIRMED)
    told = classify(item).to_map()
    assert told["by"] == "rules" and told["verified"] is False
    assert set(told["reasons"]) == {"symptom", "task", "cause"}
    again = Finding.from_map(json.loads(json.dumps({**item.to_map(), "triage": {"class": told}})))
    assert again.triage["class"] == told


junk = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
                    max_leaves=8)  # fmt: skip


@given(
    st.sampled_from([kind for kind in Kind if kind.is_fault]),
    st.text(max_size=40),
    st.dictionaries(st.sampled_from(["backend", "bisect", "variants", "class", "similar"]), junk),
)
def test_every_finding_has_known_classes(kind, text, triage):
    found = classify(finding(kind, text=text, triage=triage))
    assert found.symptom.name in SYMPTOMS
    assert found.task.name in {*TASKS, UNKNOWN} and found.cause.name in {*CAUSES, UNKNOWN}
    for part in (found.symptom, found.task, found.cause):
        assert bool(part.reasons) == (part.name != UNKNOWN)


def test_what_meta_says_is_no_fact():
    words = 'META = {"title": "torch.cond and argmax of a channels_last NaN tensor", "mode": "forward"}\n\n\ndef build'
    told = finding(Kind.WRONG_VALUE, text=PLAIN.replace("def build", words, 1), triage={"backend": "inductor"})
    plain = finding(Kind.WRONG_VALUE, triage={"backend": "inductor"})
    assert classify(told) == classify(plain)
    assert search_words(told) == search_words(plain)
