"""Signatures: what makes two suspects the same bug. Recomputable from stored observations."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from fuzzer.observation import Fault, Observation
from fuzzer.verdict import Kind, Verdict

#: What torch adds to a message: where in the program, and how to learn more.
_CONTEXT = ("\nfrom user code", "\nSet TORCHDYNAMO_VERBOSE", "\n  target: ", "\n\nWhile executing %", "\nCaused by: (")

#: Frames that every failing compile passes through; the first frame below them tells where it failed.
_PLUMBING = re.compile(
    r"^(torch/_dynamo/(output_graph|repro/|utils|convert_frame|eval_frame|symbolic_convert|callback)"
    r"|torch/_inductor/(compile_fx|debug|utils)\.py|torch/_functorch/_aot_autograd/|torch/_utils_internal|contextlib"
    r"|torch/_logging|torch/fx/interpreter\.py|torch/utils/_|<|harness/|program\.py|c[a-z0-9]{40,}\.py)"
)

_NORMALISERS: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDR"),
    (re.compile(r"/[^\s'\":,]+/([^\s/'\":,]+)"), r"\1"),  # paths: keep the last part
    (re.compile(r"\b(tmp|buf|arg|op|primals_|getitem_|tangents_|in_out_ptr|in_ptr|out_ptr)\d+(_\d+)?\b"), r"\1N"),
    (re.compile(r"\b[us]\d+\b"), "SYM"),
    (re.compile(r"'[^'\n]{40,}'"), "'TEXT'"),
    (re.compile(r"-?\b\d+(\.\d+)?(e[+-]?\d+)?\b"), "N"),
    (re.compile(r"\[(?:(?:N|SYM)(?:, )?)*\]|\((?:(?:N|SYM)(?:, ?)?)+\)"), "SHAPE"),
    (re.compile(r"\s+"), " "),
    (re.compile(r"(expected size N==N, stride N==N at dim=N)(; expected size N==N, stride N==N at dim=N)+"), r"\1"),
)


#: Names of dtypes in words of eager kernels; one check refuses every dtype but its own.
_DTYPES = re.compile(
    r"\b(Byte|Char|Short|Int|Long|Half|Float|Double|BFloat16|Bool|UInt(16|32|64)|Complex(Half|Float|Double)|Float8_\w+)\b"
)


@dataclass(frozen=True)
class Signature:
    """``major`` decides sameness (stage, kind, root cause); ``minor`` is the message, for a person."""

    major: str
    minor: str

    @property
    def sig8(self) -> str:
        """Eight hexadecimal digits that name a finding's directory."""
        return hashlib.sha256(self.major.encode("utf-8", "backslashreplace")).hexdigest()[:8]


def signature(verdict: Verdict, observation: Observation, culprit: str = "", called: Iterable[str] = ()) -> Signature:
    """The signature of a suspect.

    Args:
        culprit: for silent faults, what localisation found (for instance ``argmin int64``). Without it the set of
            operators stands in, which splits one bug into many: localise before grouping.
        called: names of what the program calls (``knowledge.retrieval.called``), which stand in where not even
            operators are known, since the process died in its first run.
    """
    head = f"{verdict.stage}|{verdict.kind.value}"
    if verdict.debatable:
        # By-design differences are as many as there are programs; a person wants to see each reason once.
        return Signature(f"debatable|{verdict.debatable}", verdict.reason)
    if verdict.kind in (Kind.COMPILE_ERROR, Kind.EXTRA_CHECK, Kind.EAGER_INTERNAL_ASSERT):
        fault = observation.fault(verdict.stage)
        if fault is not None:
            return _of_fault(head, fault, culprit)
    if verdict.kind is Kind.MISSING_CHECK:
        fault = observation.fault("eager") or observation.fault("eager_backward")
        message = normalise(fault.message) if fault else ""
        return Signature(f"{head}|{culprit}|{without_dtypes(message)[:120]}", message)
    where = culprit or ",".join(sorted({short_operator(op) for op in observation.operators}))
    where = where or ",".join(sorted(set(called)))
    return Signature(f"{head}|{where}", verdict.reason)


#: Dynamo's words for an operator that raises on fake tensors: which one, and what it raised.
_FAKE_TENSOR_CALL = re.compile(r"with fake tensors: call_\w+ (?:<\S+ \S+ )?([\w.]+).*?: got (\w+\(.*)", re.S)


def root_message(fault: Fault) -> str:
    """The message that says what went wrong, without the words that torch wraps around every such failure."""
    message = fault.cause_message or fault.message
    inner = _FAKE_TENSOR_CALL.search(message)
    return f"{inner.group(1)}: {inner.group(2).splitlines()[0]}" if inner else message


def _of_fault(head: str, fault: Fault, culprit: str) -> Signature:
    message = normalise(root_message(fault))
    frames = [frame for frame in fault.frames if not _PLUMBING.match(frame)]
    place = " < ".join(reversed(frames[-2:])) or culprit
    compiler = compiler_error(fault.message + "\n" + fault.cause_message)
    if compiler:
        return Signature(f"{head}|C++|{compiler}", compiler)
    return Signature(f"{head}|{fault.cause_type}|{place}|{without_dtypes(message)[:100]}", message[:400])


def compiler_error(text: str) -> str:
    """The first error line of a C++ compiler, normalised; empty when there is none."""
    found = re.search(r"error: (.+)", text)
    return normalise(found.group(1))[:160] if found else ""


def normalise(text: str) -> str:
    """A message without what varies between runs: addresses, numbers, sizes, temporary names, paths."""
    for marker in _CONTEXT:
        text = text.split(marker)[0]
    for pattern, replacement in _NORMALISERS:
        text = pattern.sub(replacement, text)
    return text.strip()[:600]


def without_dtypes(message: str) -> str:
    """A normalised message without the names of dtypes that eager kernels use."""
    return _DTYPES.sub("DTYPE", message)


#: Operators that surround others, and name no culprit.
_INCIDENTAL = frozenset({"detach", "alias", "clone", "lift_fresh", "view", "_to_copy", "t", "transpose", "expand"})


def culprits(operators: Iterable[str]) -> frozenset[str]:
    """Short names of operators that may be at fault: those that surround others only where there are no others."""
    names = frozenset(map(short_operator, operators))
    return names - _INCIDENTAL or names


def short_operator(name: str) -> str:
    """``aten.add.Tensor`` → ``add``."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else name
