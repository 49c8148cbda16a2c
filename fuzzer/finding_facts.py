"""A finding as rules look at it: every fact in one place, whatever of triage was done. Pure."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.finding import Finding
from fuzzer.severity import unusual_numbers
from fuzzer.signature import short_operator
from fuzzer.verdict import Kind
from fuzzer.write_order import overwritten

_SILENT = frozenset({Kind.WRONG_VALUE, Kind.WRONG_GRADIENT, Kind.WRONG_MUTATION})


class FindingFacts:
    """What the rules look at, read from a finding once."""

    def __init__(self, finding: Finding) -> None:
        self.finding = finding
        self.kind, self.stage, self.debatable = finding.kind, finding.stage, finding.debatable
        self.code, self.mode = code_and_mode(finding.shown_text)
        triage = finding.triage
        self.backend = str(triage.get("backend") or "")
        bisected = _map(triage.get("bisect"))
        self.subsystem, self.named = str(bisected.get("subsystem") or ""), str(bisected.get("what") or "")
        self.needed = frozenset(map(str, triage.get("essential_features") or ()))
        self.free = frozenset(map(str, triage.get("free_features") or ()))
        self.variants = {str(name): str(kind) for name, kind in _map(triage.get("variants")).items()}
        self.versions = {str(name): str(kind) for name, kind in _map(triage.get("versions")).items()}
        faults = _map(finding.facts.get("faults"))
        self.fault = _fault(faults, (self.stage, "compile", "run", "backward", "second", "random_path"))
        self.refusal = _fault(faults, ("eager", "eager_backward", "second_eager"))
        self.leaf = _map(next(iter(finding.facts.get("leaves") or ()), None))
        self.eager, self.compiled = _map(self.leaf.get("eager")), _map(self.leaf.get("compiled"))
        self.dtype = str(self.eager.get("dtype", ""))
        self.operators = frozenset(short_operator(name) for name in finding.operators)
        self.signal = int(_map(finding.facts.get("end")).get("signal") or 0)

    @property
    def silent(self) -> bool:
        return self.kind in _SILENT

    @property
    def loud(self) -> bool:
        return self.kind in (Kind.COMPILE_ERROR, Kind.EXTRA_CHECK)

    @functools.cached_property
    def overwritten(self) -> str:
        """What is overwritten after it was read, unless the fault shows without any in-place operation."""
        return "" if any(feature.startswith("mutation=") for feature in self.free) else overwritten(self.code)

    @functools.cached_property
    def unusual(self) -> str:
        return unusual_numbers(self.finding)

    def raised(self, pattern: str) -> str:
        """The words of the compiled side's exception that match; of its message and types."""
        found = re.search(pattern, self.fault.said, re.IGNORECASE)
        return found[0] if found else ""

    def passed_through(self, pattern: str, innermost: int = 6) -> str:
        """The innermost frame of the compiled side's exception that matches."""
        frames = [frame for frame in self.fault.frames[-innermost:] if re.search(pattern, frame)]
        return frames[-1] if frames else ""


@dataclass(frozen=True)
class ToldFault:
    """An exception: its innermost type, all that it says, its frames (outermost first)."""

    type: str = ""
    said: str = ""  # types and messages
    frames: tuple[str, ...] = ()


def _fault(faults: Mapping[str, Any], stages: Sequence[str]) -> ToldFault:
    for stage in stages:
        fault = _map(faults.get(stage))
        if fault:
            said = "\n".join(str(fault.get(key, "")) for key in ("type", "cause_type", "cause_message", "message"))
            frames = tuple(str(frame) for frame in fault.get("frames") or ())
            return ToldFault(str(fault.get("cause_type") or fault.get("type", "")), said, frames)
    return ToldFault()


def code_and_mode(text: str) -> tuple[str, str]:
    """A program without its META, whose words are somebody's and no facts, and the mode that META names."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text, ""
    lines, mode = text.splitlines(), ""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "META" for target in node.targets):
            for number in range(node.lineno - 1, node.end_lineno or node.lineno):
                lines[number] = ""
            if isinstance(node.value, ast.Dict):
                for key, item in zip(node.value.keys, node.value.values):
                    if getattr(key, "value", "") == "mode":
                        mode = str(getattr(item, "value", ""))
    return "\n".join(lines), mode


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
