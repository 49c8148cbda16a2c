"""Which imported issues look like a finding? The words to search for, and the order of what was found."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.finding import Finding
from fuzzer.finding_facts import code_and_mode
from fuzzer.knowledge.issues import IssueIndex, Similar
from fuzzer.observation import Fault
from fuzzer.signature import root_message, short_operator
from fuzzer.verdict import Kind
from fuzzer.write_order import overwritten

#: Issues shown, and those that the search is asked for before they are put in order.
SHOWN, _ASKED = 3, 40

#: Operators that take part in the search: a long program's say little.
_OPERATORS = 12

#: Where an issue of the tracker lies. Dumps say numbers only, and the compiler under test has one tracker.
_LINK = "https://github.com/pytorch/pytorch/issues/{}"

#: Words that reports use for a symptom; few, for every report has some.
_SYMPTOMS: Mapping[Kind, str] = {
    Kind.WRONG_VALUE: "wrong",
    Kind.WRONG_GRADIENT: "gradient backward",
    Kind.WRONG_MUTATION: "mutation",
    Kind.METADATA: "stride shape",
    Kind.COMPILE_ERROR: "error",
    Kind.MISSING_CHECK: "accepts raises",
    Kind.EXTRA_CHECK: "error raises",
    Kind.CRASH: "crash",
    Kind.EAGER_CRASH: "crash",
    Kind.EAGER_INTERNAL_ASSERT: "internal assert",
    Kind.HANG: "hang compile time",
    Kind.SLOW_COMPILE: "compile time exponential",
}
_SIGNALS: Mapping[int, str] = {
    4: "illegal instruction", 6: "abort", 7: "bus error", 8: "floating point exception", 11: "segmentation fault",
}  # fmt: skip

#: Operators of Python, as reports call them.
_PYTHON: Mapping[type[ast.operator] | type[ast.unaryop], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide", ast.Mod: "remainder",
    ast.Pow: "pow", ast.MatMult: "matmul", ast.BitXor: "bitwise_xor", ast.BitAnd: "bitwise_and",
    ast.BitOr: "bitwise_or", ast.LShift: "left_shift", ast.RShift: "right_shift",
}  # fmt: skip

#: Name → other words for the same, or for what is as good: a report may be about the sibling.
_ALIKE: Mapping[str, str] = {
    "t": "transpose transposed", "transpose": "transposed", "permute": "transposed", "T": "transposed",
    "argmin": "argmax", "argmax": "argmin", "amin": "amax", "amax": "amin", "cummin": "cummax", "cummax": "cummin",
    "remainder": "modulo", "floor_divide": "floordiv division", "div": "division", "mm": "matmul", "bmm": "matmul",
    "unfold": "overlap", "expand": "expanded", "as_strided": "strided", "to": "cast", "half": "float16 cast",
    "float": "cast", "_to_copy": "cast", "pad": "padding", "scaled_dot_product_attention": "sdpa attention",
    "mul": "multiplication times", "add": "adding addition", "sub": "subtraction",
    "complex64": "complex ComplexFloat", "float16": "half fp16", "bfloat16": "bf16", "int64": "long",
    "uint8": "byte", "int8": "char",
}  # fmt: skip

#: Words of reports → what stands for them in a program.
_TRAITS: Mapping[str, str] = {
    "nan": r"\bnan\b", "inf": r"\binf\b", "0-dim scalar": r"\(\(\)|, \(\)|torch\.tensor\([-\d.]+[,)]",
    "empty": r"\(0[,)]|, 0[,)]|\(\d+, 0\b", "channels_last": r"channels_last",
    "complex": r"\bcomplex|view_as_real|\dj\b", "quantized": r"quantize",
}  # fmt: skip

#: Names of the program that tell nothing about its bug.
_PLAIN = frozenset(
    {"torch", "nn", "functional", "fn", "build_inputs", "manual_seed", "randn", "rand", "randint", "arange", "tensor",
     "Tensor", "zeros", "ones", "full", "float32", "Module", "forward", "super", "range", "len", "tuple", "F",
     "detach", "alias", "lift_fresh", "_to_copy", "clone", "empty", "shape", "dtype", "manual", "seed", "self"}
)  # fmt: skip

#: Shares of a score: operators against the whole text, all words against it, operators named in the title.
_BY_OPERATORS, _BY_WORDS, _BY_TITLE = 0.4, 0.3, 0.3


@dataclass(frozen=True)
class Words:
    """What to search for. ``operators`` in order of the program's text, the rest as in a report's title."""

    operators: tuple[str, ...]
    others: str

    @property
    def names(self) -> str:
        """Operators, with other words for them."""
        return " ".join(f"{name} {_ALIKE.get(name.rstrip('_'), '')}" for name in self.operators)


def nearest(finding: Finding, index: IssueIndex) -> list[dict[str, Any]]:
    """The three issues most like a finding, for ``Finding.triage["similar"]``: number, title, link, score (0 to 1).

    The best hit of each search counts as one, so a score compares issues of one finding only.
    """
    words = search_words(finding)
    by_names = index.similar(words.names, _ASKED) if re.search(r"\w\w", words.names) else []
    by_words = index.similar(f"{words.names} {words.others}", _ASKED) if re.search(r"\w\w", words.others) else []
    return [
        {"number": item.number, "title": item.title, "link": _LINK.format(item.number), "score": round(score, 3)}
        for item, score in ranked(words, by_names, by_words)[:SHOWN]
    ]


def search_words(finding: Finding) -> Words:
    """Operators, symptom, root message, stage and dtypes of a finding."""
    called = list(dict.fromkeys(name for name in _called(finding.shown_text) if name not in _PLAIN))
    ran = [short_operator(name) for name in finding.operators]
    operators = [*called, *(name for name in ran if name not in _PLAIN and name not in called)]
    dtypes = " ".join(f"{name} {_ALIKE.get(name, '')}" for name in sorted(_dtypes(finding.shown_text)))
    end = finding.facts.get("end") or {}
    signal = _SIGNALS.get(int(end.get("signal") or 0), "")
    order = "in-place mutated" if overwritten(finding.shown_text) else ""
    told = (_SYMPTOMS.get(finding.kind, ""), signal, order, dtypes, *_traits(finding), _message(finding))
    return Words(tuple(dict.fromkeys(operators))[:_OPERATORS], " ".join(told))


def _traits(finding: Finding) -> Iterator[str]:
    """Words for unusual numbers, sizes and modes, as reports use them."""
    code, mode = code_and_mode(finding.shown_text)
    yield {"dynamic": "dynamic", "backward": "backward", "train": "backward"}.get(mode, "")
    for word, pattern in _TRAITS.items():
        if re.search(pattern, code):
            yield word
    for leaf in (finding.facts.get("leaves") or ())[:1]:
        if leaf.get("numel") == 0:
            yield "empty"
        if isinstance(leaf.get("eager"), Mapping) and leaf["eager"].get("shape") == []:
            yield "0-dim scalar"


def ranked(words: Words, by_names: Sequence[Similar], by_words: Sequence[Similar]) -> list[tuple[Similar, float]]:
    """Both searches and the titles, weighed together; the best first."""
    scores: dict[int, float] = {}
    items: dict[int, Similar] = {}
    for found, weight in ((by_names, _BY_OPERATORS), (by_words, _BY_WORDS)):
        best = max((item.score for item in found), default=0.0)
        for item in found:
            items[item.number] = item
            scores[item.number] = scores.get(item.number, 0.0) + weight * item.score / (best or 1.0)
    for number, item in items.items():
        scores[number] += _BY_TITLE * _named(words.operators, item.title)
    return [(items[number], score) for number, score in sorted(scores.items(), key=lambda pair: (-pair[1], pair[0]))]


def _named(operators: Sequence[str], title: str) -> float:
    """Share of the operators that a title names; the first ones of the program's text weigh most."""
    names = {_plain(word) for word in re.findall(r"\w+", title)}
    asked = list(dict.fromkeys(_plain(name) for name in operators))
    weights = {name: 1.0 / (1 + place) for place, name in enumerate(asked)}
    return sum(weight for name, weight in weights.items() if name in names) / max(1e-9, sum(weights.values()))


def _plain(name: str) -> str:
    """``AdaptiveAvgPool1d`` and ``adaptive_avg_pool1d_`` as one word."""
    return name.lower().replace("_", "")


def _called(text: str) -> Iterator[str]:
    """Names called in ``fn`` and in modules of the program, and Python's operators, in order."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and not node.name.startswith("build_inputs"):
            for inner in ast.walk(node):
                if isinstance(inner, ast.Call):
                    name = inner.func.attr if isinstance(inner.func, ast.Attribute) else getattr(inner.func, "id", "")
                    if name:
                        yield name
                elif isinstance(inner, (ast.BinOp, ast.AugAssign)):
                    yield _PYTHON[type(inner.op)]
                elif isinstance(inner, ast.Attribute) and inner.attr in ("T", "mT"):
                    yield "transpose"


def _dtypes(text: str) -> set[str]:
    return set(re.findall(r"\btorch\.((?:b?float|u?int|complex|quint|qint)\w*\d|bool|half)\b", text)) - {"float32"}


def _message(finding: Finding) -> str:
    """The first line of the exception that the finding rests on."""
    faults = finding.facts.get("faults") or {}
    stage = "eager" if finding.kind is Kind.MISSING_CHECK else finding.stage
    fault = faults.get(stage) or next(iter(faults.values()), None)
    if not isinstance(fault, Mapping):
        return ""
    told = Fault("", str(fault.get("message", "")), "", str(fault.get("cause_message", "")))
    name = str(fault.get("cause_type") or fault.get("type", "")).split(".")[-1]
    return f"{name} {root_message(told).strip().splitlines()[0][:200] if root_message(told).strip() else ''}"
