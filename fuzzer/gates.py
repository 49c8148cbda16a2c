"""The gates between a suspect and a finding: each knows one innocent explanation, and how to test for it.

A gate is data and two pure functions. ``options`` is the variant of the execution that it wants to see (None: the
first observation is enough); ``decide`` reads both and answers ``kept``, ``dismissed: why`` or ``debatable: why``.
Gates run in the order of ``GATES``, the cheap ones first; the first dismissal ends the suspect.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from fuzzer.faulty_line import is_unread, unread_calls
from fuzzer.judge import CAST_ELISION, MALFORMED, judge_all
from fuzzer.observation import Observation
from fuzzer.signature import short_operator
from fuzzer.verdict import Kind, Verdict

KEPT = "kept"
#: A compiler that hangs burns its CPU; below this share of wall time the machine had no time for it.
_BUSY = 0.25
_CANCELLATION = 8.0  # roundings of the sum of magnitudes
_NOISE = 10.0  # times eager's own error
_VALUE_KINDS = frozenset({Kind.WRONG_VALUE, Kind.WRONG_GRADIENT, Kind.WRONG_MUTATION})
#: Autograd passes these operators the results of their forward; other arguments are outside their contract.
_PRIVATE_BACKWARD = re.compile(r"\b(?:torch\.ops\.)?aten\.\w+_backward\b")
_TRY = re.compile(r"^\s+try:$", re.M)
_DRAWS = re.compile(
    r"dropout|rand|bernoulli|normal|uniform|multinomial|exponential|rrelu|poisson|gumbel|binomial", re.I
)
_DROPOUT = re.compile(r"dropout\w*\(", re.I)
_UNINITIALISED = re.compile(r"\b(?:empty\w*|new_empty\w*|resize_\w*|resize_as_)\(")
#: Words of the harness for an operator whose eager kernel does not compare the sizes of its arguments.
_BEYOND = "reads beyond its arguments"
_SHORT_FLOATS = ("float16", "bfloat16", "float8", "complex32")
_RANDOM_OPERATORS = frozenset({
    "rand", "randn", "randint", "randperm", "rand_like", "randn_like", "randint_like", "bernoulli", "bernoulli_",
    "dropout", "native_dropout", "normal", "normal_", "uniform", "uniform_", "multinomial", "exponential_",
    "log_normal_", "geometric_", "cauchy_", "random_", "poisson", "rrelu", "rrelu_with_noise", "alpha_dropout",
    "feature_dropout", "normal_functional", "binomial"
})  # fmt: skip

#: Their results name one of several values.
_INDEX_OPERATORS = frozenset({
    "argmax", "argmin", "max", "min", "cummax", "cummin", "kthvalue", "median", "topk", "sort",
    "adaptive_max_pool2d", "adaptive_max_pool3d", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "fractional_max_pool2d", "fractional_max_pool3d"
})  # fmt: skip

#: The values of their arguments decide how large their results are; ``index`` with a mask does so by ``nonzero``.
_DATA_SIZED_OPERATORS = frozenset({
    "nonzero", "masked_select", "index", "_unique2", "unique_dim", "unique_consecutive", "unique_dim_consecutive",
    "repeat_interleave", "_local_scalar_dense", "bincount"
})  # fmt: skip


@dataclass(frozen=True)
class Suspect:
    """What a gate may look at."""

    verdict: Verdict
    observation: Observation
    meta: Mapping[str, Any]
    text: str = ""

    @property
    def leaf(self) -> dict[str, Any]:
        return dict(self.verdict.details.get("leaf", {}))

    @property
    def code(self) -> str:
        """The program's own text, without the lines that a stored finding adds to run it as a script."""
        return self.text.split("\nif __name__ ==", 1)[0]

    @property
    def dtype(self) -> str:
        """Of the value in question as eager made it; empty where eager made no tensor there."""
        return str((self.leaf.get("eager") or {}).get("dtype") or "")

    def dtypes(self) -> set[str]:
        """Of every tensor that any operator of the eager run read or made."""
        rows = (row for op in self.observation.ops for row in [*op.get("tensors", []), *op.get("outputs", [])])
        return {str(row[0]) for row in rows}

    def operators(self) -> set[str]:
        return {short_operator(name) for name in self.observation.operators}


@dataclass(frozen=True)
class Gate:
    """One innocent explanation. ``applies`` says for which suspects it is worth asking."""

    name: str
    applies: Callable[[Suspect], bool]
    options: dict[str, Any] | None
    decide: Callable[[Suspect, Observation], str]

    def is_asked(self, suspect: Suspect) -> bool:
        """Whether the explanation fits at all. Facts that it stumbles over leave the suspect as it is."""
        try:
            return self.applies(suspect)
        except MALFORMED:
            return False


def _is_value(suspect: Suspect) -> bool:
    return suspect.verdict.kind in _VALUE_KINDS


def _is_measured(suspect: Suspect) -> bool:
    """Wrong by its values: also a shape that values decide (how many are above zero, and so on)."""
    if suspect.verdict.kind is not Kind.METADATA:
        return _is_value(suspect)
    sized = _shape(suspect.leaf, "eager") != _shape(suspect.leaf, "compiled")
    return sized and bool(suspect.operators() & _DATA_SIZED_OPERATORS)


def _undefined(suspect: Suspect, _again: Observation) -> str:
    words = sorted({op["undefined"] for op in suspect.observation.ops if op.get("undefined")})
    if not _UNINITIALISED.search(suspect.code):
        # Operators allocate before they write (dropout, batch norm): only what the program leaves unwritten counts.
        words = [word for word in words if word != "uninitialised memory"]
    if not words:
        private = _PRIVATE_BACKWARD.search(suspect.code)
        return f"debatable: {private.group(0)} called by hand" if private else KEPT
    if words == ["uninitialised memory"]:
        return "dismissed: the program reads uninitialised memory"
    return "debatable: undefined in C++: " + ", ".join(word for word in words if word != "uninitialised memory")


def _in_unread_line(suspect: Suspect) -> bool:
    fault = suspect.observation.fault("eager")
    if suspect.verdict.kind is not Kind.MISSING_CHECK or fault is None or not fault.line:
        return False
    return is_unread(suspect.code, fault.line)


def _dropped(suspect: Suspect, _again: Observation) -> str:
    return "debatable: eager refuses a line whose result nothing reads, which a compiler may drop"


def _draws_unread(suspect: Suspect) -> bool:
    generator = bool(suspect.verdict.details.get("generator"))
    return generator and any(map(_DRAWS.search, unread_calls(suspect.code)))


def _dropped_draw(suspect: Suspect, _again: Observation) -> str:
    return "debatable: nothing reads some of the random numbers, and a compiler may draw none that nothing reads"


def _is_identity(suspect: Suspect) -> bool:
    """Eager alone returns an input, or one result twice, in a program that drops out."""
    return suspect.verdict.details.get("shared_in") == "eager" and bool(_DROPOUT.search(suspect.code))


def _same_tensor(suspect: Suspect, _again: Observation) -> str:
    return "debatable: a dropout that drops nothing returns its argument itself, which no one promises"


def _reads_beyond(suspect: Suspect, _again: Observation) -> str:
    return f"debatable: eager {_BEYOND} where it ought to refuse"


def _is_beyond(suspect: Suspect) -> bool:
    return any(op.get("undefined") == _BEYOND for op in suspect.observation.ops)


def _within_tolerance(suspect: Suspect, _again: Observation) -> str:
    """PyTorch's own rule gates the report, but not where it is blind: small magnitudes, one shared NaN."""
    leaf = suspect.leaf
    if suspect.verdict.debatable:
        return KEPT
    if leaf.get("same") is not True or leaf.get("reference") != "float64" or leaf.get("compiled_class_wrong"):
        return KEPT
    scale = leaf.get("reference_rms", 0.0)
    error = leaf.get("compiled_rmse", 0.0)
    if scale and error > 1e-2 * scale and error > _NOISE * leaf.get("eager_rmse", 0.0):
        return KEPT  # of small numbers; where eager is as far off, nothing but noise is left of them
    if scale and leaf.get("eager_rmse", 0.0) > 1e-2 * scale and _has_random(suspect):
        return KEPT  # in float64 other random numbers are drawn: no reference for these
    if suspect.meta.get("exact"):
        return "debatable: within PyTorch's own accuracy rule"
    return "dismissed: within PyTorch's own accuracy rule"


def _random(suspect: Suspect, again: Observation) -> str:
    if not any(same_leaf(suspect.verdict, verdict) for verdict in judge_all(again, suspect.meta)):
        return "dismissed: only random numbers differ (equal with fallback_random)"
    if suspect.leaf.get("compiled_class_wrong") or suspect.leaf.get("nan_mismatch"):
        return KEPT
    # Functionalisation draws into a fresh contiguous tensor, so a strided one is filled in another order.
    return "debatable: random numbers are drawn in another order"


def _persists(suspect: Suspect, again: Observation) -> str:
    """Run again with the compiler, the linker and the flags that users have: a fault found only without is none."""
    verdicts = judge_all(again, suspect.meta)
    if verdicts[0].kind is Kind.HARNESS_ERROR:
        return "not run: " + verdicts[0].reason  # our own fault proves nothing; fresh processes will tell
    if suspect.verdict.kind is Kind.HANG and again.end.how == "timeout" and again.cpu < _BUSY * again.seconds:
        return f"dismissed: the machine was busy ({again.cpu:.0f} CPU s in {again.seconds:.0f} s)"
    if any(verdict.kind is suspect.verdict.kind for verdict in verdicts) or verdicts[0].is_suspect:
        return KEPT
    return f"dismissed: gone when run again ({verdicts[0].kind.value})"


def _ill_conditioned(suspect: Suspect, again: Observation) -> str:
    """Drop when eager itself moves as much as the difference once its inputs move by one ULP."""
    if suspect.verdict.debatable or suspect.meta.get("exact"):
        return KEPT
    leaf, path = suspect.leaf, suspect.leaf.get("path")
    moved = [other for other in again.raw.get("perturbed_leaves", []) if other["path"] == path]
    if not moved or not leaf:
        return KEPT
    if ("eager_err" in leaf and "eager_rmse" not in leaf) or "max_rel" not in leaf:
        if any(map(_differs, moved)):
            return "dismissed: eager's own result changes when its inputs move by one ULP"
        return KEPT
    if _is_odd(leaf):
        if any(other.get("nan_mismatch") or other.get("inf_mismatch") for other in moved):
            return "dismissed: eager's own NaN and infinities move when its inputs move by one ULP"
        return KEPT
    distance = max(other.get("max_abs", 0.0) for other in moved)
    # Rounding inside a program is a handful of such perturbations, hence the factor.
    if distance * 16 >= leaf.get("max_abs", 0.0):
        return f"dismissed: ill-conditioned (one ULP on the inputs moves eager by {distance:.3g})"
    return KEPT


def _noise(suspect: Suspect, again: Observation) -> str:
    """PyTorch's rule accepts it, our own stricter one does not: is it more than rounding anywhere in it can do?"""
    leaf, path = suspect.leaf, suspect.leaf.get("path")
    moved = [other.get("max_abs", 0.0) for other in again.raw.get("rounded_leaves", ()) if other["path"] == path]
    # Two roundings to one of eager's, as a rule: the factor is that of ``_ill_conditioned``.
    if moved and max(moved) * 16 >= leaf.get("max_abs", 0.0):
        return f"dismissed: rounding alone moves eager by {max(moved):.3g}"
    return KEPT


def _recomputed(suspect: Suspect, again: Observation) -> str:
    """NaN and infinities that come of a value whose two computations round differently, as fusion may have it.

    No fault of any one operator: ``x - x.amax()`` is then a tiny negative number where eager has 0.
    """
    path = suspect.leaf.get("path")
    found = [*again.raw.get("rounded_leaves", ()), *again.raw.get("recomputed_leaves", ())]
    odd = any(_is_odd(other) for other in found if other["path"] == path)
    return "debatable: follows from rounding, where a value is computed again for each use" if odd else KEPT


def _is_odd(leaf: Mapping[str, Any]) -> bool:
    """NaN or infinity on one side only."""
    return bool(leaf.get("compiled_class_wrong") or leaf.get("nan_mismatch") or leaf.get("inf_mismatch"))


def _is_rounded(suspect: Suspect) -> bool:
    """Short floats are left to the gate for casts: there rounding explains much, and which ones is known."""
    if suspect.verdict.stage == "second" or suspect.meta.get("exact"):
        return False  # only the first call is rounded at random, and its results have the same paths
    return _has_floats(suspect) and not _has_short_floats(suspect)


def _is_small(suspect: Suspect) -> bool:
    return _is_rounded(suspect) and suspect.leaf.get("same") is True and not _is_odd(suspect.leaf)


def _is_rounded_oddly(suspect: Suspect) -> bool:
    return _is_rounded(suspect) and _is_odd(suspect.leaf)


def _index_among_ties(suspect: Suspect, again: Observation) -> str:
    """Eager's own result changes when it names another of several equal values, so the compiler may do so too."""
    path = suspect.leaf.get("path")
    moved = (other for other in again.raw.get("tied_leaves", ()) if other["path"] == path)
    return "debatable: follows from an index among ties" if any(map(_differs, moved)) else KEPT


def _differs(leaf: Mapping[str, Any]) -> bool:
    return bool(leaf.get("differing")) or _shape(leaf, "eager") != _shape(leaf, "compiled")


def _shape(leaf: Mapping[str, Any], side: str) -> Any:
    return (leaf.get(side) or {}).get("shape")


def _has_index(suspect: Suspect) -> bool:
    """Something was computed that names one of several values. An index itself is judged by what it points at."""
    return (
        _is_measured(suspect) and "gathered_equal" not in suspect.leaf and bool(suspect.operators() & _INDEX_OPERATORS)
    )


def _cancels(suspect: Suspect, _again: Observation) -> str:
    """A sum whose terms all but cancel has few digits left, and which ones depends on the order of adding.

    Adding n numbers of magnitude S in all is off by about eps · S whatever the order; the factor leaves room for the
    few such sums on the way to a result.
    """
    leaf = suspect.leaf
    if suspect.meta.get("exact") or leaf.get("compiled_class_wrong") or leaf.get("nan_mismatch"):
        return KEPT
    condition = max((float(op.get("cancellation", 0.0)) for op in suspect.observation.ops), default=0.0)
    scale = leaf.get("reference_rms") or 0.0
    eps = 2.0**-53 if suspect.dtype == "float64" else 2.0**-24
    if scale and leaf.get("max_abs", 0.0) / scale <= _CANCELLATION * eps * condition:
        return f"dismissed: a sum cancels all but 1/{condition:.3g} of its terms"
    return KEPT


def _cast_elision(suspect: Suspect, again: Observation) -> str:
    """Gone once casts are emulated: short floats were kept wide by fusion, which is intended."""
    leaf = suspect.leaf
    if leaf.get("compiled_class_wrong") or leaf.get("nan_mismatch"):
        return KEPT  # fewer roundings may move a value, but may not turn a finite one into NaN
    elided = not any(same_leaf(suspect.verdict, verdict) for verdict in judge_all(again, suspect.meta))
    if suspect.verdict.debatable == CAST_ELISION:
        return KEPT if elided else "dismissed: eager is the less accurate side"
    return f"debatable: {CAST_ELISION}" if elided else KEPT


def same_leaf(one: Verdict, other: Verdict) -> bool:
    """The same kind of fault in the same value."""
    left, right = one.details.get("leaf", {}), other.details.get("leaf", {})
    return one.kind is other.kind and left.get("path") == right.get("path")


def _has_short_floats(suspect: Suspect) -> bool:
    short = any(dtype.startswith(_SHORT_FLOATS) for dtype in suspect.dtypes())
    return _is_measured(suspect) and (short or suspect.verdict.debatable == CAST_ELISION)


def _has_floats(suspect: Suspect) -> bool:
    floats = ("float", "bfloat", "complex")
    return _is_measured(suspect) and any(dtype.startswith(floats) for dtype in suspect.dtypes())


def _sums(suspect: Suspect) -> bool:
    return _is_value(suspect) and any(op.get("cancellation") for op in suspect.observation.ops)


def _has_random(suspect: Suspect) -> bool:
    return _is_measured(suspect) and bool(suspect.leaf) and bool(suspect.operators() & _RANDOM_OPERATORS)


def _caught_exception(suspect: Suspect, _again: Observation) -> str:
    return "debatable: Dynamo gives up on an exception that the program catches"


def _catches(suspect: Suspect) -> bool:
    raised = suspect.observation.fault(suspect.verdict.stage)
    on_fake_tensors = raised is not None and "making fake tensor call" in raised.message
    return suspect.verdict.kind is Kind.COMPILE_ERROR and on_fake_tensors and bool(_TRY.search(suspect.code))


GATES: tuple[Gate, ...] = (
    Gate("caught exceptions", _catches, None, _caught_exception),
    Gate("unread line", _in_unread_line, None, _dropped),
    Gate("unread draw", _draws_unread, None, _dropped_draw),
    Gate("identity", _is_identity, None, _same_tensor),
    Gate("reads beyond", _is_beyond, None, _reads_beyond),
    Gate("undefined behaviour", _is_value, None, _undefined),
    Gate("PyTorch's accuracy rule", _is_value, None, _within_tolerance),
    Gate("ties", _has_index, {"ties": True}, _index_among_ties),
    Gate("cancellation", _sums, None, _cancels),
    Gate("random numbers", _has_random, {"inductor_config": {"fallback_random": True}}, _random),
    Gate("ill-conditioned", _has_floats, {"perturb": True}, _ill_conditioned),
    Gate("rounding", _is_small, {"rounding": True}, _noise),
    Gate("recomputation", _is_rounded_oddly, {"rounding": True, "recompute": True}, _recomputed),
    Gate("cast elision", _has_short_floats, {"inductor_config": {"emulate_precision_casts": True}}, _cast_elision),
    Gate("persists", lambda suspect: True, {"plain": True}, _persists),
)


def apply_gate(suspect: Suspect, gate: Gate, again: Observation) -> tuple[Suspect, bool]:
    """The suspect with the gate's outcome recorded, and whether it is still one."""
    try:
        outcome = gate.decide(suspect, again)
    except MALFORMED as error:
        outcome = f"not run: unexpected facts ({type(error).__name__}: {error})"
    verdict = suspect.verdict
    gates = (*verdict.gates, (gate.name, outcome))
    if outcome.startswith("debatable: ") and not verdict.debatable:
        verdict = replace(verdict, debatable=outcome.removeprefix("debatable: "))
    if outcome.startswith("dismissed: "):
        passed = Verdict(Kind.PASS, verdict.stage, outcome.removeprefix("dismissed: "), gates=gates)
        return replace(suspect, verdict=passed), False
    return replace(suspect, verdict=replace(verdict, gates=gates)), True
