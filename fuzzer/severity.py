"""In which order a person should read findings: silent harm before loud harm, ordinary programs before odd ones."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

from fuzzer.finding import Finding, State
from fuzzer.verdict import Kind


class Rank(IntEnum):
    """Places in the order, the worst first. What nobody notices comes before what stops the program."""

    SILENT = 1  # a wrong result, no unusual number anywhere
    CRASH = 2
    GRADIENT = 3  # a wrong gradient, or a wrong input or buffer after the call
    UNUSUAL = 4  # wrong numbers, but only where NaN, infinities, extremes or uninitialised memory take part
    MISSING_CHECK = 5
    METADATA = 6
    COMPILE_ERROR = 7
    SLOW = 8
    EAGER = 9  # eager itself is at fault: not the compiler under test
    DEBATABLE = 10
    KNOWN = 11
    FLAKY = 12
    IGNORED = 13


#: One word a person reads at a glance.
WORDS: Mapping[Rank, str] = {
    Rank.SILENT: "critical",
    Rank.CRASH: "high",
    Rank.GRADIENT: "high",
    Rank.UNUSUAL: "medium",
    Rank.MISSING_CHECK: "medium",
    Rank.METADATA: "medium",
    Rank.COMPILE_ERROR: "low",
    Rank.SLOW: "low",
    Rank.EAGER: "low",
    Rank.DEBATABLE: "aside",
    Rank.KNOWN: "aside",
    Rank.FLAKY: "aside",
    Rank.IGNORED: "aside",
}

_BY_KIND: Mapping[Kind, tuple[Rank, str]] = {
    Kind.CRASH: (Rank.CRASH, "the compiled program kills the process"),
    Kind.MISSING_CHECK: (Rank.MISSING_CHECK, "the compiled program returns something where eager refuses"),
    Kind.METADATA: (Rank.METADATA, "values agree, but dtype, shape, stride, sharing or requires_grad do not"),
    Kind.COMPILE_ERROR: (Rank.COMPILE_ERROR, "loud: the compiler refuses a valid program"),
    Kind.EXTRA_CHECK: (Rank.COMPILE_ERROR, "loud: the compiled program refuses what eager accepts"),
    Kind.HANG: (Rank.SLOW, "the compiled program never ends"),
    Kind.SLOW_COMPILE: (Rank.SLOW, "compile time explodes"),
    Kind.EAGER_CRASH: (Rank.EAGER, "eager itself dies: no fault of the compiler"),
    Kind.EAGER_INTERNAL_ASSERT: (Rank.EAGER, "an internal assertion of eager fails: no fault of the compiler"),
}

_VALUE_KINDS: Mapping[Kind, tuple[Rank, str]] = {
    Kind.WRONG_VALUE: (Rank.SILENT, "silent: a wrong result from ordinary numbers"),
    Kind.WRONG_GRADIENT: (Rank.GRADIENT, "silent: a wrong gradient from ordinary numbers"),
    Kind.WRONG_MUTATION: (Rank.GRADIENT, "silent: an input or buffer is wrong after the call"),
}

#: Magnitudes that no model holds on purpose. float16 ends at 6.6e4, which is an ordinary number elsewhere.
_HUGE, _TINY = 1e30, 1e-30
_INT_EXTREME = 2**31 - 1

#: Features that ask for unusual numbers; they count only for a program that was not reduced to what it needs.
_ODD_FEATURES = frozenset(
    {"values=nan", "values=inf", "values=huge", "values=denormal", "values=extreme", "boundary=float_extreme",
     "boundary=int64_extreme", "op_family=uninitialised"}
)  # fmt: skip
_UNINITIALISED = frozenset(
    {"empty", "empty_like", "new_empty", "empty_strided", "new_empty_strided", "empty_permuted", "resize_"}
)


@dataclass(frozen=True)
class Severity:
    """``rank`` orders (1 is the worst, see ``Rank``), ``word`` is for a glance, ``reason`` says why in one line."""

    rank: int
    word: str
    reason: str


def severity(finding: Finding) -> Severity:
    """How soon a person should look at a finding. Its state counts before its kind."""
    rank, reason = _by_state(finding) or _by_kind(finding)
    return Severity(int(rank), WORDS[rank], " ".join(reason.split()))


def by_severity(findings: Iterable[Finding]) -> list[Finding]:
    """The worst first; within a rank what PyTorch's own ``same`` rejects, then what was seen more often."""
    return sorted(
        findings, key=lambda item: (severity(item).rank, not _rejected_by_same(item), -item.duplicates, item.sig8)
    )


def _by_state(finding: Finding) -> tuple[Rank, str] | None:
    if finding.state is State.IGNORED:
        return Rank.IGNORED, f"ignored: {finding.note}"
    if finding.state is State.FLAKY:
        return Rank.FLAKY, f"only {finding.confirmations} of {finding.attempts} fresh processes showed it"
    if finding.state is State.FIXED:
        return Rank.KNOWN, "fixed"
    if finding.state is State.KNOWN:
        return Rank.KNOWN, f"looks like {finding.known_issue}"
    if finding.debatable:
        return Rank.DEBATABLE, f"maintainers may call it intended: {finding.debatable}"
    return None


def _by_kind(finding: Finding) -> tuple[Rank, str]:
    if finding.kind in _BY_KIND:
        return _BY_KIND[finding.kind]
    if finding.stage == "eager":
        return Rank.EAGER, "eager's own result is wrong: no fault of the compiler"
    if finding.facts and not finding.facts.get("leaves"):
        return Rank.METADATA, "no value differs, only state that is left behind"
    odd = unusual_numbers(finding)
    if odd:
        return Rank.UNUSUAL, f"wrong where unusual numbers take part: {odd}"
    return _VALUE_KINDS[finding.kind]


def _rejected_by_same(finding: Finding) -> bool:
    return any(leaf.get("same") is False for leaf in finding.facts.get("leaves", ())[:1])


def unusual_numbers(finding: Finding) -> str:
    """What unusual takes part in a finding, in words; empty for ordinary numbers.

    Looks at the value that differs, at what the program writes out, and, before reduction, at what was asked of it.
    """
    for leaf in finding.facts.get("leaves", ())[:1]:
        if any(leaf.get(name) for name in ("nan_eager", "nan_compiled", "nan_reference", "nan_mismatch")):
            return "NaN in the result"
        if leaf.get("inf_mismatch") or leaf.get("inf_flips"):
            return "infinities in the result"
        word = _odd_elements(leaf)
        if word:
            return f"{word} in the result"
    word = _odd_text(finding.shown_text)
    if word:
        return word
    if not finding.reduced:
        asked = [feature for feature in _features(finding.text) if feature in _ODD_FEATURES]
        if asked:
            return f"asked for {asked[0]}"
    return ""


def _odd_elements(leaf: Mapping[str, Any]) -> str:
    for element in leaf.get("worst") or ():
        for side in ("eager", "compiled", "reference"):
            word = _odd_number(element.get(side))
            if word:
                return word
    return ""


def _odd_number(value: Any) -> str:
    """A word for a number that is not ordinary. Text is read as a number where it is one (JSON has no NaN)."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return ""
    if math.isnan(number):
        return "NaN"
    if math.isinf(number):
        return "infinities"
    if isinstance(value, int) and not isinstance(value, bool):
        return "integer extremes" if abs(value) >= _INT_EXTREME else ""
    if abs(number) >= _HUGE:
        return "extreme numbers"
    return "denormal or tiny numbers" if 0 < abs(number) <= _TINY else ""


def _odd_text(text: str) -> str:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    filled = {id(call) for call in _filled_calls(tree)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            word = _odd_number(node.value)
            if word:
                return word
        elif isinstance(node, ast.Attribute) and node.attr in ("nan", "inf", "finfo", "iinfo"):
            return {"nan": "NaN", "inf": "infinities"}.get(node.attr, "extremes of a dtype")
        elif isinstance(node, ast.Call):
            word = _odd_call(node, id(node) in filled)
            if word:
                return word
    return ""


def _filled_calls(tree: ast.AST) -> Iterator[ast.AST]:
    """``torch.empty(…)`` of ``torch.empty(…).normal_()``: initialised at once."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr.endswith("_") and not node.attr.startswith("_"):
            yield node.value


def _odd_call(node: ast.Call, filled: bool) -> str:
    name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if name == "float" and node.args and isinstance(node.args[0], ast.Constant):
        return _odd_number(node.args[0].value)
    return "uninitialised memory" if name in _UNINITIALISED and not filled else ""


def _features(text: str) -> list[str]:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(item, "id", "") == "META" for item in node.targets):
            return [
                item.value for item in ast.walk(node) if isinstance(item, ast.Constant) and isinstance(item.value, str)
            ]
    return []
