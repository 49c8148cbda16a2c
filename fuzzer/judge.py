"""Judges one observation: pure code, from facts to a verdict.

Values follow PyTorch's own accuracy rule: a compiled result is wrong when its error against the float64 reference is
clearly larger than eager's own error, not when it merely differs from eager. Detection is strict and per element; the
gates (``fuzzer.gates``) then dismiss what has an innocent explanation.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

from fuzzer.observation import ENDED_TWICE, Fault, Observation
from fuzzer.signature import compiler_error, root_message
from fuzzer.verdict import Kind, Verdict

_EAGER_STAGES = frozenset({"eager", "eager_backward", "eager_again", "observe", "second_eager"})
_COMPILED_STAGES = frozenset({"compile", "run", "backward", "second", "random_path"})

#: ``META["expect_zero"]``: what eager's outputs may be away from zero.
_ZERO = 1e-4


#: Largest harmless excess of compiled's error over twice eager's, in ULPs of the result's dtype. Vectorised
#: functions are specified to 1–4 ULP, sums in another order to tens; float64 has no wider reference, so that its
#: eager result counts as exact and summation noise falls on the compiled side alone.
EXCESS_ULP = {"float32": 64.0, "float64": 512.0, "complex64": 64.0, "complex128": 512.0}
EXCESS_ULP_SHORT = 4.0  # float16, bfloat16, float8: fused code keeps float32 in between, so it errs less, not more

#: A float32 result whose eager value is this far from float64 while the compiled one is not has lost a rounding to
#: float16 (2^13 ULP of float32) or bfloat16 (2^16) on the way.
ELISION_ULP = 1024.0
CAST_ELISION = "cast elision"

#: Without a reference: the default relative tolerances of torch.testing.assert_close, times four.
RELATIVE = {"float16": 4e-3, "bfloat16": 6.4e-2, "float32": 5.2e-6, "float64": 4e-7, "complex64": 5.2e-6}

_OUT_OF_MEMORY = re.compile(r"out of memory|can't allocate memory|not enough memory|tried to allocate", re.I)
_INTERNAL_ASSERT = re.compile(r"INTERNAL ASSERT FAILED|please report a bug to PyTorch", re.I)

#: Refusals that maintainers call a limit, not a bug. The backward graph is traced ahead of time, so a program whose
#: backward would be refused (it modifies what backward needs, or has no derivative) fails when compiled, while eager
#: fails only if somebody calls backward.
_DEBATABLE_REFUSALS = (
    (
        "backward that eager would refuse",
        re.compile(
            r"needed for gradient computation has been modified by an inplace operation"
            r"|derivative for \S+ is not implemented|the derivative for '.*' is not implemented"
        ),
    ),
    (
        "writes where elements overlap",
        re.compile(
            r"more than one element of the written-to tensor refers to a single memory location"
            r"|tensor being mutated that has internal overlap"
        ),
    ),
    ("a limit that the compiler names itself", re.compile(r"\bdoes not (?:yet )?(?:handle|support)\b")),
)

#: Documented limits of torch.compile: refusing them is no fault of the compiler.
_UNSUPPORTED_TYPES = re.compile(
    r"torch\._dynamo\.exc\.(Unsupported|UserError|ObservedException|FailOnRecompileLimitHit|RecompileLimitExceeded)"
    r"|UserErrorType|ConstraintViolationError|DataDependentOutputException|DynamicOutputShapeException"
)


_NUMPY_REFUSES = re.compile(r"Can't call numpy\(\) on Tensor that requires grad")

#: What code raises that meets facts of another form than it was written for.
MALFORMED = (AttributeError, IndexError, KeyError, TypeError, ValueError)


def judge(observation: Observation, meta: Mapping[str, Any] | None = None) -> Verdict:
    """The verdict of one execution. ``meta`` is the program's META (``check_stride``, ``exact``, … are honoured)."""
    return judge_all(observation, meta or {})[0]


def judge_all(observation: Observation, meta: Mapping[str, Any]) -> list[Verdict]:
    """Every verdict that the facts support, the most severe first; never empty.

    More than one only for silent faults: each leaf that differs is a suspect of its own, so that dismissing one (a tie,
    rounding noise) does not hide another. Facts of an unexpected form are a fault of our own: they cost one program,
    not a campaign.
    """
    try:
        return _judge_all(observation, meta)
    except MALFORMED as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        reason = f"unexpected facts: {type(error).__name__}: {error} (judge.py, line {where.lineno})"
        return [Verdict(Kind.HARNESS_ERROR, observation.end.stage, reason)]


def _judge_all(observation: Observation, meta: Mapping[str, Any]) -> list[Verdict]:
    single = (
        _judge_end(observation)
        or _judge_fork(observation)
        or _judge_build(observation)
        or _judge_faults(observation, meta)
    )
    if single is not None:
        return [single]
    for stage in ("compare", "second_compare"):
        fault = observation.fault(stage)
        if fault is not None:
            return [Verdict(Kind.HARNESS_ERROR, stage, _one_line(fault))]
    return _judge_values(observation, meta) or [Verdict(Kind.PASS)]


# -- how the child ended --------------------------------------------------------------------------------------------


def _judge_end(observation: Observation) -> Verdict | None:
    end = observation.end
    if end.how == "done":
        return None
    if end.how == "lost" and end.why.startswith(ENDED_TWICE):
        return Verdict(Kind.INVALID, end.stage, end.why)  # it took two fork servers with it: the program is at fault
    if end.how == "lost":
        return Verdict(Kind.HARNESS_ERROR, end.stage, f"the fork server was lost: {end.why}")
    if end.how == "exit":
        if end.status in (70, 71):
            return Verdict(Kind.HARNESS_ERROR, end.stage, _last_line(observation.log) or end.why)
        return Verdict(Kind.INVALID, end.stage, f"the program left with status {end.status}")
    if end.how in ("output", "files", "processes"):
        return Verdict(Kind.INVALID, end.stage, end.why)
    if end.stage in ("build", "start"):
        return Verdict(Kind.INVALID, end.stage, end.why)
    if end.how == "signal":
        return _judge_signal(observation)
    if end.stage in _EAGER_STAGES or end.stage in ("float64", "perturbed", "compare", "second_compare"):
        return Verdict(Kind.INVALID, end.stage, end.why)  # too slow or too large without the compiler
    if end.how == "timeout":
        return Verdict(Kind.HANG, end.stage, end.why)
    return Verdict(Kind.SLOW_COMPILE if end.stage == "compile" else Kind.CRASH, end.stage, end.why)


def _judge_signal(observation: Observation) -> Verdict:
    end = observation.end
    if end.signal == 9:
        return Verdict(Kind.HARNESS_ERROR, end.stage, "killed from outside (out of memory on this machine?)")
    reason = f"{end.why} in stage {end.stage}"
    details = {"signal": end.signal}
    if end.stage in _EAGER_STAGES or end.stage in ("float64", "perturbed"):
        return Verdict(Kind.EAGER_CRASH, end.stage, reason, details=details)
    if end.stage in _COMPILED_STAGES:
        return Verdict(Kind.CRASH, end.stage, reason, details=details)
    return Verdict(Kind.HARNESS_ERROR, end.stage, reason)


def _last_line(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else ""


def _judge_fork(observation: Observation) -> Verdict | None:
    """Autograd refuses to run in a child of a process that has run it: our fault, never the program's."""
    for stage in observation.stages:
        if stage.fault is not None and "combination with fork-based multiprocessing" in stage.fault.message:
            return Verdict(Kind.HARNESS_ERROR, stage.name, _one_line(stage.fault))
    return None


# -- exceptions -----------------------------------------------------------------------------------------------------


def _judge_build(observation: Observation) -> Verdict | None:
    fault = observation.fault("build")
    return Verdict(Kind.INVALID, "build", _one_line(fault)) if fault else None


def _judge_faults(observation: Observation, meta: Mapping[str, Any]) -> Verdict | None:
    eager = ("eager", "eager_backward")
    if meta.get("expect_eager") == "error" and observation.stage("eager") and not _first_fault(observation, eager)[1]:
        return Verdict(Kind.MISSING_CHECK, "eager", "eager accepts what it ought to refuse")
    found = _judge_pair(observation, eager, ("compile", "run", "backward"), meta)
    found = found or _judge_pair(observation, ("second_eager",), ("second",), meta)
    if found is not None and found.kind is not Kind.INVALID:
        return found
    if observation.stage("random_path"):
        other = _judge_pair(observation, eager, ("random_path",), meta)
        if other is not None and other.kind is not Kind.INVALID:
            return replace(other, details={**other.details, "random_path": True})
    return found


def _judge_pair(
    observation: Observation, eager: tuple[str, ...], compiled: tuple[str, ...], meta: Mapping[str, Any]
) -> Verdict | None:
    eager_stage, eager_fault = _first_fault(observation, eager)
    compiled_stage, compiled_fault = _first_fault(observation, compiled)
    if eager_fault is None and compiled_fault is None:
        return None
    if eager_fault is not None and compiled_fault is not None and meta.get("same_exc"):
        same = eager_fault.type in (compiled_fault.type, compiled_fault.cause_type)
        if not same:
            return _judge_compiled_refusal(compiled_stage, compiled_fault)
    if eager_fault is not None:
        return _judge_eager_refusal(observation, eager_stage, eager_fault, compiled_fault, compiled)
    assert compiled_fault is not None
    return _judge_compiled_refusal(compiled_stage, compiled_fault)


def _judge_eager_refusal(
    observation: Observation, stage: str, fault: Fault, compiled_fault: Fault | None, compiled: tuple[str, ...]
) -> Verdict:
    if _OUT_OF_MEMORY.search(fault.message):
        return Verdict(Kind.INVALID, stage, _one_line(fault))
    if _INTERNAL_ASSERT.search(fault.message):
        return Verdict(Kind.EAGER_INTERNAL_ASSERT, stage, _one_line(fault))
    if compiled_fault is not None:
        return Verdict(Kind.INVALID, stage, _one_line(fault))
    if not any(observation.stage(name) for name in compiled):
        return Verdict(Kind.INVALID, stage, _one_line(fault))  # the compiled side never ran
    # Documented: NumPy code is traced into torch operators, which can be differentiated.
    debatable = "NumPy code is traced as torch code" if _NUMPY_REFUSES.search(fault.message) else ""
    text = f"eager refuses ({_one_line(fault)}), compiled returns"
    return Verdict(Kind.MISSING_CHECK, "run", text, debatable=debatable)


def _judge_compiled_refusal(stage: str, fault: Fault) -> Verdict:
    if _OUT_OF_MEMORY.search(fault.message):
        return Verdict(Kind.INVALID, stage, _one_line(fault))
    if _UNSUPPORTED_TYPES.search(fault.type) or _UNSUPPORTED_TYPES.search(fault.cause_type):
        return Verdict(Kind.UNSUPPORTED, stage, _one_line(fault))
    by_compiler = ("torch._inductor", "torch._dynamo")
    compiler_raised = fault.type.startswith(by_compiler) or stage in ("compile", "second", "random_path")
    kind = Kind.COMPILE_ERROR if compiler_raised else Kind.EXTRA_CHECK
    debatable = next((words for words, pattern in _DEBATABLE_REFUSALS if pattern.search(fault.message)), "")
    return Verdict(kind, stage, _one_line(fault), debatable=debatable)


def _first_fault(observation: Observation, stages: tuple[str, ...]) -> tuple[str, Fault | None]:
    for name in stages:
        fault = observation.fault(name)
        if fault is not None:
            return name, fault
    return "", None


def _one_line(fault: Fault) -> str:
    compiler = compiler_error(fault.message + "\n" + fault.cause_message)
    if compiler:
        return f"C++ compiler: {compiler}"
    lines = root_message(fault).strip().splitlines()
    name = (fault.cause_type or fault.type).split(".")[-1]
    return f"{name}: {lines[0][:200]}" if lines else name


# -- values ---------------------------------------------------------------------------------------------------------


def _judge_values(observation: Observation, meta: Mapping[str, Any]) -> list[Verdict]:
    unstable = {leaf["path"] for leaf in observation.self_leaves if leaf.get("differing")}
    found: list[Verdict] = []
    for stage, leaves in (("run", observation.leaves), ("second", observation.second_leaves)):
        for leaf in leaves:
            if leaf["path"] not in unstable:
                verdict = _judge_leaf(leaf, stage, meta)
                if verdict is not None:
                    found.append(verdict)
    for leaf in observation.raw.get("random_leaves", ()):
        verdict = _judge_leaf(leaf, "run", meta)
        if verdict is not None:
            found.append(replace(verdict, details={**verdict.details, "random_path": True}))
    zero = observation.raw.get("eager_zero", 0.0)
    if not abs(zero) <= _ZERO:
        found.append(Verdict(Kind.WRONG_VALUE, "eager", f"eager is off by {zero:.4g} where zero is promised"))
    if not found:
        found += [verdict for verdict in (_judge_aliases(observation), _judge_generator(observation, meta)) if verdict]
    if not found and unstable:
        paths = ", ".join(sorted(unstable)[:3])
        found.append(Verdict(Kind.FLAKY, "eager", f"eager differs from itself at {paths}"))
    return sorted(found, key=_severity)


def _judge_aliases(observation: Observation) -> Verdict | None:
    """Results that share memory with an input or with each other on one side only."""
    aliases = observation.raw.get("aliases") or {}
    eager, compiled = _pairs(aliases.get("eager", ())), _pairs(aliases.get("compiled", ()))
    if eager == compiled:
        return None
    pair = min(eager ^ compiled)
    side = "eager" if pair in eager else "compiled"
    text = f"{', '.join(pair)} share storage in {side} only"
    return Verdict(Kind.METADATA, "run", text, details={"shared_in": side})


def _pairs(groups: Iterable[Sequence[str]]) -> set[tuple[str, str]]:
    return {pair for group in groups for pair in combinations(sorted(group), 2)}


def _judge_generator(observation: Observation, meta: Mapping[str, Any]) -> Verdict | None:
    """Under fallback_random both sides draw the same numbers, so they leave the generator in the same state.

    Inductor's own generator takes one number as its seed, however many eager draws.
    """
    own = meta.get("inductor_config", {}).get("fallback_random") is False
    if own or not meta.get("random") or observation.raw.get("rng", {}).get("equal", True):
        return None
    return Verdict(
        Kind.WRONG_VALUE, "run", "the random generator is left in another state", details={"generator": True}
    )


def _severity(verdict: Verdict) -> tuple[int, int]:
    order = (Kind.WRONG_VALUE, Kind.WRONG_MUTATION, Kind.WRONG_GRADIENT, Kind.METADATA, Kind.FLAKY)
    return (1 if verdict.debatable else 0, order.index(verdict.kind))


def _judge_leaf(leaf: dict[str, Any], stage: str, meta: Mapping[str, Any]) -> Verdict | None:
    path = leaf["path"]
    kind = _value_kind(path)
    eager, compiled = leaf.get("eager"), leaf.get("compiled")
    details = {"leaf": leaf}
    if eager is None or compiled is None:
        text = f"{path}: eager gives {leaf.get('eager_text')}, compiled {leaf.get('compiled_text')}"
        # Around a graph break an input may get a gradient of zeros where eager gives it none.
        debatable = "zeros in place of no gradient" if leaf.get("only_zeros") and path.startswith("grad.") else ""
        return Verdict(kind, stage, text, debatable=debatable, details=details)
    for name in ("shape", "dtype", "device"):
        if eager[name] != compiled[name]:
            text = f"{path}: {name} is {eager[name]} in eager, {compiled[name]} compiled"
            return Verdict(Kind.METADATA, stage, text, details=details)
    if leaf.get("differing"):
        reason = wrong_value(leaf, meta)
        if reason:
            debatable = "sign of zero" if _only_signs(leaf) else ""
            return Verdict(kind, stage, f"{path}: {reason}", debatable=debatable, details=details)
        if _less_rounded(leaf):
            text = f"{path}: compiled is closer to float64 by {leaf['eager_err']:.3g} ULP"
            return Verdict(kind, stage, text, debatable=CAST_ELISION, details=details)
    metadata = _promised_metadata(path, eager, compiled, meta)
    if metadata:
        return Verdict(Kind.METADATA, stage, f"{path}: {metadata}", details=details)
    if leaf.get("sign_of_zero") and not leaf.get("differing"):
        text = f"{path}: {leaf['sign_of_zero']} zeros have the other sign"
        return Verdict(kind, stage, text, debatable="sign of zero", details=details)
    return None


def _only_signs(leaf: dict[str, Any]) -> bool:
    """Every element of the wrong class is an infinity of the other sign: 1/-0.0 against 1/0.0 and the like."""
    wrong = leaf.get("compiled_class_wrong", 0)
    return bool(wrong) and leaf.get("inf_flips", 0) == wrong


def _less_rounded(leaf: dict[str, Any]) -> bool:
    """Compiled is far closer to float64 than eager is: explicit rounding was left out, intended where it is a cast."""
    eager, compiled = leaf.get("eager_err", 0.0), leaf.get("compiled_err", 0.0)
    wide = leaf["eager"]["dtype"] in ("float32", "float64")
    return wide and leaf.get("reference") == "float64" and eager > ELISION_ULP and compiled < eager / 64


def _value_kind(path: str) -> Kind:
    if path.startswith("grad."):
        return Kind.WRONG_GRADIENT
    return Kind.WRONG_MUTATION if path.startswith("in") else Kind.WRONG_VALUE


def _promised_metadata(path: str, eager: dict[str, Any], compiled: dict[str, Any], meta: Mapping[str, Any]) -> str:
    promised = meta.get("mode") in ("backward", "train") or meta.get("check_rg")
    if promised and path.startswith("out") and eager["requires_grad"] != compiled["requires_grad"]:
        return f"requires_grad is {eager['requires_grad']} in eager, {compiled['requires_grad']} compiled"
    if meta.get("check_stride") and _strides(eager) != _strides(compiled):
        return f"stride is {eager['stride']} in eager, {compiled['stride']} compiled"
    return ""


def _strides(facts: dict[str, Any]) -> list[int]:
    """Strides that mean something: those of dimensions of size one are free."""
    return [stride for stride, size in zip(facts["stride"], facts["shape"]) if size != 1]


def wrong_value(leaf: dict[str, Any], meta: Mapping[str, Any]) -> str:
    """Why this leaf is wrong by more than rounding, or nothing."""
    dtype = leaf["eager"]["dtype"]
    if leaf.get("outside_storage"):
        return "the compiled result reaches beyond its storage"
    has_reference = leaf.get("reference") == "float64"
    if meta.get("exact"):
        return f"{leaf['differing']} of {leaf['numel']} elements differ where equality is promised"
    if not _is_float(dtype):
        return _wrong_integers(leaf, has_reference)
    if not has_reference:
        return _wrong_without_reference(leaf, dtype)
    if leaf.get("compiled_class_wrong"):
        return f"{leaf['compiled_class_wrong']} of {leaf['numel']} elements are NaN or infinite on the wrong side"
    limit = EXCESS_ULP.get(dtype, EXCESS_ULP_SHORT)
    if leaf["excess_err"] <= limit:
        return ""
    return (
        f"compiled is off by {leaf['compiled_err']:.4g} ULP of {dtype} from float64, eager by {leaf['eager_err']:.4g}"
    )


def _wrong_integers(leaf: dict[str, Any], has_reference: bool) -> str:
    if leaf.get("gathered_equal"):
        return ""  # a tie: documented as free
    if has_reference and leaf["compiled_err"] <= leaf["eager_err"]:
        return ""  # eager is the less accurate one
    return f"{leaf['differing']} of {leaf['numel']} elements differ"


def _wrong_without_reference(leaf: dict[str, Any], dtype: str) -> str:
    if leaf.get("nan_mismatch") or leaf.get("inf_mismatch"):
        return f"{leaf['nan_mismatch'] + leaf['inf_mismatch']} of {leaf['numel']} elements NaN or infinite on one side"
    limit = RELATIVE.get(dtype, 4e-2)
    if leaf.get("max_rel", 0.0) <= limit or leaf.get("same"):
        return ""
    return f"relative difference {leaf['max_rel']:.3g} (no float64 reference: {leaf.get('reference')})"


def _is_float(dtype: str) -> bool:
    return dtype.startswith(("float", "bfloat", "complex"))
