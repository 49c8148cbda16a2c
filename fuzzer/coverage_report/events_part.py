"""The part of a report about what the compiler says of itself, and about its tables of operators and passes."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Set
from typing import Any

from fuzzer.coverage_report.evidence import Evidence
from fuzzer.coverage_report.python_part import is_reached
from fuzzer.coverage_report.sources import Registration, Source
from fuzzer.coverage_report.target_files import TargetFiles
from fuzzer.knowledge.operators import Operators

_BREAKS = ("graph_break", "unimplemented")
_REGISTRY = "torch/_dynamo/graph_break_registry.json"
_PLURALS = {"lowering": "lowerings", "decomposition": "decompositions", "fx pass": "fx_passes"}
#: What the harness puts for what differs between two programs with one cause, as an expression that matches it.
_PLACEHOLDERS = {"NAME": r"\S.*?", "N": r"\d+(?:\.\d+)?", "ADDR": r"\S+", "FILE": r"\S+", "(…)": r"[(\[{].*?[)\]}]"}
_WORDS = re.compile(r"\bNAME\b|\bN\b|\bADDR\b|\bFILE\b|\(…\)")


def events_part(
    evidence: Evidence,
    lines: Mapping[str, Set[int]],
    sources: Mapping[str, Source],
    registrations: Iterable[Registration],
    operators: Operators | None,
    breaks: Iterable[str],
) -> dict[str, Any]:
    """Sections ``lowerings, decompositions, fx_passes, fallbacks, operators, graph_breaks, counters, kernels``.

    Each is ``{registry, known, seen: [{name, count}], never: [name]}``: ``registry`` says where the names of what could
    be seen come from, and is empty where nobody knows them; ``known`` counts those. ``lines`` are all lines known to
    have run, with those of start-up. A count is a number of programs, and 0 where it is not counted.
    """
    return {
        **_tables(registrations, lines, sources),
        **_catalogue(evidence, operators),
        "graph_breaks": _breaks(evidence.counters, list(breaks)),
        "counters": _section("", _plain_counters(evidence.counters)),
        "kernels": _section("", evidence.kernels),
    }


def _section(registry: str, seen: Mapping[str, int], never: Iterable[str] = ()) -> dict[str, Any]:
    missing = sorted(never)
    rows: list[dict[str, Any]] = [{"name": name, "count": count} for name, count in seen.items()]
    rows.sort(key=lambda row: (-row["count"], row["name"]))
    return {"registry": registry, "known": len(rows) + len(missing) if registry else 0, "seen": rows, "never": missing}


def _tables(
    registrations: Iterable[Registration], lines: Mapping[str, Set[int]], sources: Mapping[str, Source]
) -> dict[str, Any]:
    """Whether the function behind each registration ran; it may have been called by another one."""
    reached: dict[str, dict[str, bool]] = {}
    for item in registrations:
        source = sources.get(item.file)
        functions = [function for function in source.functions if function.first == item.first] if source else []
        ran = any(is_reached(function, lines.get(item.file, frozenset())) for function in functions)
        table = reached.setdefault(item.kind, {})
        for name in item.names:
            label = f"{item.file.rpartition('/')[2]}:{item.first} {name}" if item.kind == "fx pass" else name
            table[label] = table.get(label, False) or ran
    found = {}
    for kind, plural in _PLURALS.items():
        table = reached.get(kind, {})
        registry = "decorators in the target's sources" if table else ""
        seen = {name: 0 for name, ran in table.items() if ran}
        found[plural] = _section(registry, seen, (name for name, ran in table.items() if not ran))
    return found


def _catalogue(evidence: Evidence, operators: Operators | None) -> dict[str, Any]:
    """Operators that ran eagerly, and calls out of generated code, against the catalogue of the target's operators."""
    called = Counter[str]()
    for kernel, count in evidence.kernels.items():
        name = kernel.removeprefix("extern ")
        if kernel.startswith("extern aten.") or kernel.startswith("extern aoti_torch_"):
            called[".".join(name.split(".")[:2])] += count
    if operators is None:
        return {"fallbacks": _section("", called), "operators": _section("", evidence.operators)}
    registry = f"catalogue of operators ({operators.fingerprint.get('torch', 'unknown torch')})"
    every = {packet for operator in operators for packet in operator.aten if packet.startswith("aten.")}
    fallbacks = {packet for operator in operators if operator.lowering == "fallback" for packet in operator.aten[:1]}
    return {
        "fallbacks": _section(registry, called, fallbacks - called.keys()),
        "operators": _section(registry, evidence.operators, every - evidence.operators.keys()),
    }


def _plain_counters(counters: Mapping[str, int]) -> dict[str, int]:
    return {name: count for name, count in counters.items() if name.partition(".")[0] not in _BREAKS}


def _breaks(counters: Mapping[str, int], known: list[str]) -> dict[str, Any]:
    seen: Counter[str] = Counter()
    for name, count in counters.items():
        category, _, reason = name.partition(".")
        if category in _BREAKS:
            seen[reason] = max(seen[reason], count)
    patterns = [_pattern(reason) for reason in seen]
    never = [reason for reason in known if not any(pattern.match(reason) for pattern in patterns)]
    return _section("torch/_dynamo/graph_break_registry.json" if known else "", seen, never)


def _pattern(reason: str) -> re.Pattern[str]:
    """An expression for the reasons that the harness writes as ``reason``; the harness cuts long ones."""
    parts, at = [], 0
    for match in _WORDS.finditer(reason):
        parts += [re.escape(reason[at : match.start()]), _PLACEHOLDERS[match.group()]]
        at = match.end()
    parts.append(re.escape(reason[at:]))
    return re.compile("".join(parts) + ("$" if len(reason) < 120 else ""))


def read_breaks(files: TargetFiles) -> list[str]:
    """Kinds of graph breaks that the target's Dynamo knows; empty before the torch that lists them (2.8)."""
    try:
        registry = json.loads(files.source(_REGISTRY).read_text(encoding="utf-8"))
        return sorted({" ".join(str(entries[0]["Gb_type"]).split()) for entries in registry.values() if entries})
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return []
