"""A small campaign on disk, with text in it that would like to be more than text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fuzzer.finding import Finding, State
from fuzzer.policy.plan import Outcome, Plan
from fuzzer.signature import Signature
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import Journal
from fuzzer.store.stats import Events, StatsFiles
from fuzzer.verdict import Kind

HOSTILE = (
    "</script></pre></textarea><img src=x onerror=\"document.title='pwned'\"><script>alert(1)</script>{{7*7}}&amp;"
)

PROGRAM = (
    f"import torch\n\ndef build_inputs():\n    return (torch.randn(2, 3),)\n\ndef fn(x):  # {HOSTILE}\n    return x\n"
)

LEAF: dict[str, Any] = {
    "path": f"out['{HOSTILE}']",
    "numel": 6,
    "differing": 2,
    "same": False,
    "eager": {"dtype": "float32", "shape": [2, 3], "stride": [3, 1]},
    "compiled": {"dtype": "float32", "shape": [2, 3], "stride": [1, 2]},
    "worst": [{"index": [1, 2], "eager": 0.5, "compiled": 10.5, "reference": 0.5000001}],
}


def finding(major: str, **changes: Any) -> Finding:
    values: dict[str, Any] = {
        "signature": Signature(major, "minor"),
        "kind": Kind.WRONG_VALUE,
        "text": PROGRAM,
        "stage": "run",
        "reason": f"out is off {HOSTILE}",
        "state": State.CONFIRMED,
        "confirmations": 3,
        "attempts": 3,
        "target": {"torch": "2.13.0+cpu", "device": "cpu"},
        "gates": (("persists", "kept"),),
        "facts": {"leaves": [LEAF], "operators": ["aten.amin.default", f"aten.{HOSTILE}"]},
        "triage": {
            "backend": "inductor",
            "bisect": {"subsystem": "lowerings", "number": 3, "what": HOSTILE, "replay": "TORCH_BISECT_MAX=3"},
            "cause": {"class": "shape inference"},
        },
    }
    return Finding(**{**values, **changes})


def campaign(path: Path) -> CampaignDirectory:
    """Five findings (one crash; one each debatable, known, flaky), three runs in the journal, four plotted moments."""
    directory = CampaignDirectory.create(path, {"seed": 1})
    store = FindingStore(directory)
    store.save(finding("run|wrong_value|amin"), ("a log",))
    crash = {"end": {"how": "signal", "signal": 11, "stage": "run"}, "operators": ["aten.mm.default"]}
    store.save(finding("run|crash|mm", kind=Kind.CRASH, facts=crash, reason="SIGSEGV", duplicates=4))
    store.save(finding("run|wrong_value|debatable", debatable="sign of zero"))
    store.save(finding("run|metadata|view", kind=Kind.METADATA, state=State.KNOWN, known_issue="pytorch#1"))
    store.save(finding("run|wrong_value|flaky", state=State.FLAKY, confirmations=1))
    stats = StatsFiles(directory)
    for moment in range(4):
        values = {"run_time": 60 * moment, "execs_done": moment, "coverage_native": 100 * moment}
        stats.write({**values, "valid_rate": 0.5, "stop_reason": "max-time", "target_torch": "2.13.0+cpu"})
        stats.plot({**values, "findings_confirmed": moment // 2})
    Events(directory.events).append(0.0, "warning", f"a warning {HOSTILE}")
    with Journal(directory.journal) as journal:
        for number, realised in enumerate((("dtype=int8", "layout=offset"), ("dtype=int8",), ()), 1):
            journal.append(run_record(number, ("dtype=int8", "layout=offset"), realised))
        bucket = {"t": "bucket", "major": f"run|{HOSTILE}", "state": "confirmed", "new": True, "at": 3.0}
        journal.append(bucket)
    return directory


def run_record(number: int, asked: tuple[str, ...], realised: tuple[str, ...], valid: bool = True) -> dict[str, Any]:
    """A record of the journal as the loop writes it."""
    plan = Plan(number, "template", features=asked)
    outcome = Outcome(plan, "pass", 1.0 if number == 1 else 0.0, 2.0, frozenset(realised), ("abs",))
    return {
        "t": "run", "n": number, "program": "p", "valid": valid, "at": 2.0 * number, "seconds": 2.0,
        "outcome": outcome.to_map(), "coverage": {}, "keys": [], "ops": ["aten.abs"],
    }  # fmt: skip
