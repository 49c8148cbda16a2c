"""What sort of bug is a finding? Its symptom, the task of the compiler's front end, the root cause. Pure.

Rules look at facts (kind, stage, first failing backend, what torch's bisector named, exceptions, values, essential
features, the program's text) and say why they fired. What comes out is machine-made and unverified: it sorts a list,
it proves nothing. Tasks and causes are the classes that imported issues are put into (``fuzzer.knowledge.issues``).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.finding import Finding
from fuzzer.finding_facts import FindingFacts
from fuzzer.knowledge.issues import CAUSES, TASKS, UNKNOWN
from fuzzer.recheck import version_key
from fuzzer.signature import compiler_error
from fuzzer.verdict import Kind

#: Symptom → what a person reads. The first rule that fires decides.
SYMPTOMS: Mapping[str, str] = {
    "eager_defect": "eager itself is at fault",
    "hang_recursion": "never ends, or recurses too deep",
    "crash": "the process dies",
    "mutation": "what was written in place is read at the wrong time",
    "gradient": "wrong gradient",
    "metadata": "dtype, shape, stride, sharing or requires_grad",
    "missing_check": "accepts what eager refuses",
    "extra_check": "refuses at run time what eager accepts",
    "compile_error": "the compiler refuses",
    "wrong_value": "wrong result",
}


@dataclass(frozen=True)
class Class:
    """One class, and the reason of every rule that spoke for it."""

    name: str = UNKNOWN
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True)
class Classification:
    """Machine-made and unverified. ``symptom`` of ``SYMPTOMS``, ``task`` of ``TASKS``, ``cause`` of ``CAUSES``."""

    symptom: Class
    task: Class
    cause: Class

    def to_map(self) -> dict[str, Any]:
        """For ``Finding.triage["class"]``."""
        parts = {"symptom": self.symptom, "task": self.task, "cause": self.cause}
        return {
            **{name: part.name for name, part in parts.items()},
            "reasons": {name: list(part.reasons) for name, part in parts.items()},
            "by": "rules",
            "verified": False,
        }


#: A rule says why it fires, or nothing.
Rule = Callable[[FindingFacts], str]


def classify(finding: Finding) -> Classification:
    """The classes of a finding. The more of triage was done (backend, bisect, features, versions), the better."""
    facts = FindingFacts(finding)
    return Classification(_symptom(facts), _heaviest(facts, _TASK_RULES), _heaviest(facts, _CAUSE_RULES))


def _symptom(facts: FindingFacts) -> Class:
    for name, rule in _SYMPTOM_RULES:
        reason = rule(facts)
        if reason:
            return Class(name, (reason,))
    return Class()


def _heaviest(facts: FindingFacts, rules: Sequence[tuple[str, float, Rule]]) -> Class:
    """The class with the greatest sum of weights; of equals the one whose rule stands first."""
    sums: dict[str, float] = {}
    reasons: dict[str, list[str]] = {}
    for name, weight, rule in rules:
        reason = rule(facts)
        if reason:
            sums[name] = sums.get(name, 0.0) + weight
            reasons.setdefault(name, []).append(reason)
    if not sums:
        return Class()
    best = max(sums, key=lambda name: sums[name])
    return Class(best, tuple(reasons[best]))


# -- symptom ----------------------------------------------------------------------------------------------------------


def _eager_at_fault(facts: FindingFacts) -> str:
    if facts.kind in (Kind.EAGER_CRASH, Kind.EAGER_INTERNAL_ASSERT) or facts.stage == "eager":
        return "the fault shows in the eager run"
    if facts.kind is Kind.CRASH and facts.backend in ("dynamo", "eager"):
        return "the process dies where Dynamo hands the graph back to eager: nothing was compiled"
    return ""


def _recursion(facts: FindingFacts) -> str:
    if facts.kind in (Kind.HANG, Kind.SLOW_COMPILE):
        return f"kind {facts.kind.value}"
    deep = facts.raised(r"RecursionError|maximum recursion depth")
    return f"the compiler raises {deep}" if deep else ""


def _stale(facts: FindingFacts) -> str:
    if facts.kind is Kind.WRONG_MUTATION:
        return "an input or buffer is wrong after the call"
    return facts.overwritten if facts.kind in (Kind.WRONG_VALUE, Kind.METADATA) else ""


def _told_metadata(facts: FindingFacts) -> str:
    """The program asks a tensor for a property and returns the answer: no number is wrong."""
    plain = facts.kind is Kind.WRONG_VALUE and not facts.eager and facts.leaf.get("eager_text")
    asked = re.search(r"\.(requires_grad|is_leaf|shape|dtype|grad_fn|size\(|stride\(|is_contiguous)", facts.code)
    return (
        f"the value that differs is no tensor, the program returns .{asked[1].rstrip('(')}" if plain and asked else ""
    )


def _of_kind(*kinds: Kind) -> Rule:
    return lambda facts: f"kind {facts.kind.value}" if facts.kind in kinds else ""


_SYMPTOM_RULES: tuple[tuple[str, Rule], ...] = (
    ("eager_defect", _eager_at_fault),
    ("hang_recursion", _recursion),
    ("crash", _of_kind(Kind.CRASH)),
    ("mutation", _stale),
    ("gradient", _of_kind(Kind.WRONG_GRADIENT)),
    ("metadata", _of_kind(Kind.METADATA)),
    ("metadata", _told_metadata),
    ("missing_check", _of_kind(Kind.MISSING_CHECK)),
    ("extra_check", _of_kind(Kind.EXTRA_CHECK)),
    ("compile_error", _of_kind(Kind.COMPILE_ERROR)),
    ("wrong_value", _of_kind(Kind.WRONG_VALUE)),
)


# -- task of the front end --------------------------------------------------------------------------------------------


def _needs(*prefixes: str) -> Rule:
    def rule(facts: FindingFacts) -> str:
        found = sorted(item for item in facts.needed if item.startswith(prefixes))
        return f"needs {', '.join(found)}" if found else ""

    return rule


def _bisected(pattern: str) -> Rule:
    def rule(facts: FindingFacts) -> str:
        named = f"{facts.subsystem} {facts.named}".strip()
        return f"torch's bisector names {named}" if named and re.search(pattern, named) else ""

    return rule


def _says(pattern: str) -> Rule:
    def rule(facts: FindingFacts) -> str:
        words = facts.raised(pattern) if facts.loud else ""
        return f"the exception says “{' '.join(words.split())}”" if words else ""

    return rule


def _raised_in(pattern: str) -> Rule:
    def rule(facts: FindingFacts) -> str:
        frame = facts.passed_through(pattern) if facts.loud else ""
        return f"raised in {frame}" if frame else ""

    return rule


_NO_KERNEL = r"not implemented for '\w+'|does not support|unsupported dtype|only supports|must have the same dtype"


def _dtype_check_lost(facts: FindingFacts) -> str:
    if facts.kind is not Kind.MISSING_CHECK:
        return ""
    found = re.search(_NO_KERNEL + r"|expected (m1|mat1|scalar type|\w+ to have the same dtype)", facts.refusal.said)
    return f"eager has no kernel for these dtypes (“{found[0]}”), what the compiler made of it runs" if found else ""


def _value_check_lost(facts: FindingFacts) -> str:
    lost = facts.kind is Kind.MISSING_CHECK and not _dtype_check_lost(facts)
    return "eager checks an argument, the compiled form does not" if lost else ""


def _refuses_arguments(facts: FindingFacts) -> str:
    if not facts.loud:
        return ""
    words = facts.raised(
        r"(unexpected|missing|got multiple).{0,40}argument|must be (positive|non-?negative|greater|less|in range)"
        r"|(?<!list )(?<!tuple )(dimension|index|dim).{0,20}out of range|out of bounds"
    )
    frame = facts.passed_through(r":_?(validate|check|canonicalize)_", 2)
    told = f"“{words}”" if words else f"raised in {frame}" if frame else ""
    return f"the compiler refuses an argument that eager takes: {told}" if told else ""


def _first_in(backend: str, words: str) -> Rule:
    return lambda facts: f"first fails with backend {backend}: {words}" if facts.backend == backend else ""


def _other_shape(facts: FindingFacts) -> str:
    if facts.kind is not Kind.METADATA or not (facts.eager and facts.compiled):
        return ""
    names = [name for name in ("shape", "stride", "dtype") if facts.eager.get(name) != facts.compiled.get(name)]
    return f"{names[0]} differs, values do not" if names else ""


def _other_class(facts: FindingFacts) -> str:
    names = ("nan_mismatch", "inf_mismatch", "compiled_class_wrong")
    odd = facts.silent and any(facts.leaf.get(name) for name in names)
    return "NaN or infinity on one side only" if odd else ""


def _small_error(facts: FindingFacts) -> str:
    floating = facts.dtype.startswith(("float", "bfloat", "complex"))
    rel = facts.leaf.get("max_rel")
    if not (facts.silent and floating and isinstance(rel, (int, float)) and not _other_class(facts)):
        return ""
    return f"floating-point results differ by {rel:.2g} of their size" if 0 < rel < 0.05 else ""


def _rounding(facts: FindingFacts) -> str:
    if re.search(r"cast|round|sign of zero|precision|accura|conversion|overflow", facts.debatable):
        return f"debatable: {facts.debatable}"
    gone = facts.silent and facts.variants.get("emulate_precision_casts") == "pass"
    return "gone with emulate_precision_casts" if gone else ""


def _constant(facts: FindingFacts) -> str:
    """Arithmetic on a tensor made of one constant inside ``fn``: what the folding passes look for."""
    folded = facts.operators & {"full", "full_like", "ones", "ones_like", "zeros", "zeros_like", "scalar_tensor"}
    return f"a constant tensor takes part ({', '.join(sorted(folded))})" if folded else ""


_HIGHER_ORDER = r"torch\.cond|while_loop|associative_scan|\bscan\(|torch\.func\.|jacfwd|jacrev|vmap|hessian|checkpoint"


def _control_words(facts: FindingFacts) -> str:
    found = re.search(_HIGHER_ORDER, facts.code)
    return f"higher-order or control-flow operator {found[0]}" if found else ""


def _index_of_layout(facts: FindingFacts) -> str:
    """An index-returning reduction disagrees while something is not laid out row by row."""
    reduction = facts.operators & {"argmax", "argmin", "max", "min", "adaptive_max_pool2d", "sort", "topk"}
    laid = re.search(r"\.(t|transpose|permute|as_strided|movedim|swapaxes)\(|\.m?T\b|channels_last", facts.code)
    if not (facts.silent and facts.dtype == "int64" and reduction and laid):
        return ""
    return f"indices of {', '.join(sorted(reduction))} where {laid[0].strip('.(')} changes the layout"


_RANDOM = frozenset(
    {"rand", "rand_like", "randn", "randn_like", "randint", "bernoulli", "native_dropout", "normal", "uniform"}
)


def _drawn(facts: FindingFacts) -> str:
    """Random numbers: the compiler draws them with operators of its own."""
    found = facts.operators & {
        "rand",
        "randn",
        "randint",
        "bernoulli",
        "dropout",
        "native_dropout",
        "normal",
        "uniform",
    }
    return f"random numbers are drawn ({', '.join(sorted(found))})" if found and facts.silent else ""


def _shared(facts: FindingFacts) -> str:
    if facts.leaf.get("outside_storage"):
        return "the compiled result reaches beyond its storage"
    found = facts.operators & {"as_strided", "as_strided_copy", "expand", "unfold", "view_copy", "slice_copy", "set_"}
    return f"explicit views ({', '.join(sorted(found))})" if found else ""


def _write_order(facts: FindingFacts) -> str:
    if facts.kind is Kind.WRONG_MUTATION:
        return "an input or buffer is wrong after the call"
    if facts.kind is Kind.METADATA and "share storage" in facts.finding.reason:
        return "which values share storage differs"
    return facts.overwritten if facts.silent else ""


def _cxx(facts: FindingFacts) -> str:
    words = compiler_error(facts.fault.said) if facts.loud else ""
    return f"the C++ compiler refuses the generated code: {words[:80]}" if words else ""


def _dies(facts: FindingFacts) -> str:
    dies = facts.kind is Kind.CRASH and facts.stage in ("run", "compile", "backward", "second", "random_path")
    return f"dies in stage {facts.stage}" if dies and facts.backend in ("", "inductor") else ""


def _too_deep(facts: FindingFacts) -> str:
    return "generated code or its analysis grows with the program" if _recursion(facts) else ""


def _integers(facts: FindingFacts) -> str:
    whole = facts.silent and facts.dtype.startswith(("int", "uint", "bool")) and facts.backend == "inductor"
    return f"{facts.dtype} results differ, from Inductor on" if whole and not _index_of_layout(facts) else ""


#: (class, weight, rule). 4 all but proves the class, 2 speaks for it, 1 decides where nothing else does.
_TASK_RULES: tuple[tuple[str, float, Rule], ...] = (
    ("operator_mapping", 4, _dtype_check_lost),
    ("operator_mapping", 2, _bisected(r"^(decomp|lowerings?)")),
    ("operator_mapping", 2, _first_in("decomp", "operators were replaced by others")),
    ("operator_mapping", 2, _raised_in(r"torch/(_decomp|_refs|_prims)|_inductor/decomposition|fx_passes/")),
    ("operator_mapping", 1, _raised_in(r"_inductor/(lowering|kernel)")),
    ("operator_mapping", 1, _first_in("aot_eager", "operators are traced through their composite forms")),
    ("operator_mapping", 2, _drawn),
    ("shape_inference", 4, _other_shape),
    ("shape_inference", 4, _says(r"expected size \S+, stride|assert_size_stride|wrong sizes? or strides?")),
    ("shape_inference", 3, _says(
        r"fake tensors?|broadcast\w*|symint|\bsymbol\w*|unbacked|data-dependent|shape mismatch|size mismatch|"
        r"invalid (shape|size)|must match the size|(list|tuple) index out of range|dim\(\) cannot be 0|"
        r"not enough values to unpack")),
    ("shape_inference", 2, _raised_in(r"_meta_registrations|_subclasses/|symbolic_shapes")),
    ("shape_inference", 2, _needs("shape=")),
    ("folding_precision", 4, _rounding),
    ("folding_precision", 3, _small_error),
    ("folding_precision", 3, _raised_in(r"constant_fold|joint_graph|sympy[\w/]*\.py|value_ranges|bounds\.py")),
    ("folding_precision", 3, _other_class),
    ("folding_precision", 1, _constant),
    ("folding_precision", 1, _needs("dtype=float16", "dtype=bfloat16", "values=")),
    ("control_flow", 5, _control_words),
    ("control_flow", 2, _first_in("dynamo", "tracing the program changes it")),
    ("control_flow", 2, _needs("control=")),
    ("unsupported_operator", 4, _says(
        r"not implemented for '\w+'|NotImplementedError|MissingOperator\w*|could not run|no kernel|unsupported\w*|"
        r"not supported|NYI")),
    ("attribute_handling", 3, _value_check_lost),
    ("attribute_handling", 3, _refuses_arguments),
    ("attribute_handling", 2, _needs("boundary=", "parameter=")),
    ("attribute_handling", 1, lambda facts: _eager_at_fault(facts) and "an operator's own arguments break it"),
    ("memory_layout", 5, _write_order),
    ("memory_layout", 4, _index_of_layout),
    ("memory_layout", 2, _needs("layout=", "mutation=")),
    ("memory_layout", 1, _shared),
    ("code_generation", 4, _cxx),
    ("code_generation", 3, _dies),
    ("code_generation", 3, _too_deep),
    ("code_generation", 2, _raised_in(
        r"_inductor/(codegen|scheduler|codecache|select_algorithm|index_propagation|ir\.py)|runtime/")),
    ("code_generation", 2, _integers),
    ("code_generation", 1, _first_in("inductor", "lowering, fusion or generated code")),
)  # fmt: skip


# -- root cause -------------------------------------------------------------------------------------------------------


def _regressed(facts: FindingFacts) -> str:
    passed, failed = _by_outcome(facts)
    older = [name for name in passed if failed and version_key(name) < version_key(failed[-1])]
    return f"passes on {older[0]}, fails on {failed[-1]}" if older else ""


def _came_back(facts: FindingFacts) -> str:
    """Fails, passes on a later release, fails again on one later still."""
    passed, failed = _by_outcome(facts)
    for middle in passed:
        older = [name for name in failed if version_key(name) < version_key(middle)]
        newer = [name for name in failed if version_key(name) > version_key(middle)]
        if older and newer:
            return f"fails on {older[0]}, passes on {middle}, fails again on {newer[0]}"
    return ""


def _by_outcome(facts: FindingFacts) -> tuple[list[str], list[str]]:
    names = sorted(facts.versions, key=version_key)
    passed = [name for name in names if facts.versions[name] == "pass"]
    return passed, [name for name in names if facts.versions[name] == facts.kind.value]


def _size_edge(facts: FindingFacts) -> str:
    if facts.leaf and facts.leaf.get("numel") == 0:
        return "an empty result"
    words = facts.raised(r"list index out of range|zero[- ](size|dim)\w*|division by zero|modulo by zero|empty\w*")
    return f"“{words}”" if words and facts.loud else ""


def _out_of_range(facts: FindingFacts) -> str:
    if facts.kind is not Kind.MISSING_CHECK:
        return ""
    found = re.search(
        r"out of (range|bounds)|must be|should be|expect\w* .{0,40}(positive|greater|less|between|within|in range)"
        r"|(negative|non-zero|overflow|smaller than|larger than|too (small|large|big))",
        facts.refusal.said,
    )
    return f"eager refuses the value of an argument (“{found[0]}”)" if found else ""


def _divides(facts: FindingFacts) -> str:
    return "SIGFPE: a division by zero, or of the least integer" if facts.signal == 8 else ""


def _untested_dtype(facts: FindingFacts) -> str:
    return "shared tests skip dtypes that eager has no kernel for" if _dtype_check_lost(facts) else ""


def _other_meaning(facts: FindingFacts) -> str:
    return "both run, and mean different things" if facts.silent or facts.kind is Kind.METADATA else ""


_CAUSE_RULES: tuple[tuple[str, float, Rule], ...] = (
    ("narrow_fix", 6, _came_back),
    ("version_drift", 5, _regressed),
    ("boundary", 3, _out_of_range),
    ("boundary", 3, _divides),
    ("boundary", 3, _size_edge),
    ("boundary", 2, lambda facts: facts.unusual),
    ("boundary", 2, _needs("shape=empty", "shape=scalar", "shape=ones", "values=", "boundary=")),
    ("missing_test", 4, _untested_dtype),
    ("missing_test", 1, _needs("dtype=complex", "dtype=float8", "dtype=quint", "dtype=qint")),
    ("semantics_misaligned", 1.5, _other_meaning),
    ("semantics_misaligned", 1.5, _value_check_lost),
    ("semantics_misaligned", 1, lambda facts: "eager accepts the program" if facts.loud else ""),
)

assert {name for name, _weight, _rule in _TASK_RULES} == set(TASKS)
assert {name for name, _weight, _rule in _CAUSE_RULES} == set(CAUSES)
