"""Findings as SARIF 2.1.0, the format of static analysers that code hosts show beside a commit."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from fuzzer import __version__
from fuzzer.finding import Finding
from fuzzer.labels import Label, set_aside
from fuzzer.page.campaign import CampaignData
from fuzzer.report import plain_title
from fuzzer.severity import severity
from fuzzer.verdict import Kind

_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"

#: Severity's words in SARIF's.
_LEVELS = {"critical": "error", "high": "error", "medium": "warning", "low": "warning", "aside": "note"}

#: What a rule is about, for its short description.
_RULES = {
    Kind.WRONG_VALUE: "The compiled function returns other values than eager.",
    Kind.WRONG_GRADIENT: "The compiled function has other gradients than eager.",
    Kind.WRONG_MUTATION: "The compiled function leaves other values in its inputs or buffers than eager.",
    Kind.METADATA: "A result's dtype, shape, stride, sharing or requires_grad differs from eager.",
    Kind.COMPILE_ERROR: "The compiler refuses a program that eager accepts.",
    Kind.MISSING_CHECK: "The compiled function accepts what eager refuses.",
    Kind.EXTRA_CHECK: "The compiled function refuses at run time what eager accepts.",
    Kind.CRASH: "The compiled function kills the process.",
    Kind.EAGER_CRASH: "Eager execution kills the process.",
    Kind.EAGER_INTERNAL_ASSERT: "An internal assertion of eager execution fails.",
    Kind.HANG: "The compiled function never ends.",
    Kind.SLOW_COMPILE: "Compile time explodes.",
}


def sarif(data: CampaignData) -> dict[str, Any]:
    """One run. A result's location is its script in the campaign directory; what is set aside is suppressed."""
    kinds = sorted({item.kind for item in data.findings}, key=lambda kind: kind.value)
    rules = [{"id": kind.value, "shortDescription": {"text": _RULES[kind]}} for kind in kinds]
    results = [_result(data, item, kinds.index(item.kind)) for item in data.findings]
    driver = {"name": "Eddy", "version": __version__, "rules": rules}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}


def _result(data: CampaignData, finding: Finding, rule: int) -> dict[str, Any]:
    weight = severity(finding)
    judgement = data.labels.get(finding.signature.major)
    aside = set_aside(finding, judgement)
    # A person's word counts before Eddy's: what was labelled real is no note.
    real = judgement is not None and judgement.label is Label.REAL
    title = plain_title(finding)
    level = "warning" if real and weight.word == "aside" else _LEVELS[weight.word]
    result: dict[str, Any] = {
        "ruleId": finding.kind.value,
        "ruleIndex": rule,
        "level": level,
        "message": {"text": _sound(f"{title}: {finding.reason}" if finding.reason else title)},
        "partialFingerprints": {"eddyMajorSignature/v1": _sound(finding.signature.major)},
        "properties": {"severity": weight.word, "rank": weight.rank, "state": finding.state.value,
                       "timesSeen": finding.duplicates + 1},
    }  # fmt: skip
    folder = data.folders.get(finding.signature.major)
    if folder is not None:
        script = folder.relative_to(data.directory.path) / ("reduced.py" if finding.reduced else "repro.py")
        place = {"artifactLocation": {"uri": quote(script.as_posix())}, "region": {"startLine": 1}}
        result["locations"] = [{"physicalLocation": place}]
    if aside:
        result["suppressions"] = [{"kind": "external", "status": "accepted", "justification": _sound(aside)}]
    return result


def _sound(text: str) -> str:
    """Without lone surrogates, which JSON readers refuse."""
    return text.encode("utf-8", "replace").decode()
