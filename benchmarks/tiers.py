"""Would two tiers pay? What a campaign would have saved, and lost, had it left out the C++ step of some programs.

    python -m benchmarks.tiers DIR [--sampled 0.02]

DIR is a campaign that ran with one tier; its journal tells for every program, in order, which kernels were generated
(by form: the text without its numbers), what compiling them took, what the program newly reached and whether it became
a finding. Two policies are replayed on it:

- ``forms seen``: the C++ step only for programs with a kernel of a form not seen before, and for the sampled share;
- ``sampled only``: the C++ step for the sampled share alone, the most that any policy can save.

A finding is lost where its kind needs the compiled code to run. What a skipped program newly reached counts as lost
share only as an upper bound: most of it is reached before the C++ step.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import save, table
from fuzzer.finding import State
from fuzzer.policy.streams import stream
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import read_journal
from fuzzer.verdict import Kind

#: Faults that show without a kernel ever running.
_FRONT_HALF = frozenset({Kind.COMPILE_ERROR, Kind.MISSING_CHECK, Kind.EXTRA_CHECK, Kind.SLOW_COMPILE, Kind.EAGER_CRASH})


@dataclass
class Replay:
    """Sums over a campaign. Seconds are wall time of the forked children."""

    programs: int = 0
    skipped: int = 0
    seconds: float = 0.0
    saved: float = 0.0
    findings: int = 0
    lost: int = 0
    reached: int = 0
    reached_by_skipped: int = 0

    def row(self, name: str) -> list[Any]:
        pace = self.seconds / max(self.seconds - self.saved, 1e-9)
        return [
            name,
            f"{self.skipped / max(self.programs, 1):.1%}",
            f"{pace:.2f}",
            f"{self.lost} of {self.findings}",
            f"{self.reached_by_skipped / max(self.reached, 1):.1%}",
        ]


def replay(
    runs: Iterable[Mapping[str, Any]], found: Mapping[str, Kind], skips: Callable[[Mapping[str, Any]], bool]
) -> Replay:
    """What leaving out the C++ step of the programs that ``skips`` names would have changed.

    ``found`` maps programs that became findings to the kind of fault.
    """
    total = Replay()
    for run in runs:
        kind, reached = found.get(run["program"]), _reached(run)
        total.programs += 1
        total.seconds += run["seconds"]
        total.findings += kind is not None
        total.reached += reached
        if skips(run):
            total.skipped += 1
            total.saved += run["cxx"]["seconds"]
            total.reached_by_skipped += reached
            total.lost += kind is not None and kind not in _FRONT_HALF
    return total


def _reached(run: Mapping[str, Any]) -> int:
    return sum(number for domain, number in run["outcome"]["new_coverage"].items() if domain in ("native", "python"))


def unseen_forms(sampled: float, seed: int = 0) -> Callable[[Mapping[str, Any]], bool]:
    """Skip programs of which every kernel's form was compiled before. Remembers: one replay each."""
    seen: set[str] = set()
    draw = stream(seed, "tiers")

    def skips(run: Mapping[str, Any]) -> bool:
        forms = run["cxx"].get("forms", [])
        skip = bool(forms) and seen.issuperset(forms) and draw.random() >= sampled
        seen.update(forms)
        return skip

    return skips


def sampled_only(sampled: float, seed: int = 0) -> Callable[[Mapping[str, Any]], bool]:
    """Skip every program with a kernel but the sampled share."""
    draw = stream(seed, "tiers")
    return lambda run: bool(run["cxx"].get("forms")) and draw.random() >= sampled


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tiers")
    parser.add_argument("dir")
    parser.add_argument("--sampled", type=float, default=0.02)
    args = parser.parse_args(argv)
    directory = CampaignDirectory.open(Path(args.dir))
    findings = FindingStore(directory).load_all()
    found = {item.program_id: item.kind for item in findings if item.state is State.CONFIRMED and not item.debatable}
    rows = (row for _at, row in read_journal(directory.journal))
    runs = [row for row in rows if row["t"] == "run" and row["cxx"]]
    forms = [form for run in runs for form in run["cxx"].get("forms", [])]
    facts = {
        "programs": len(runs),
        "kernels": len(forms),
        "kernels_same_text": sum(run["cxx"]["reused"] for run in runs),
        "kernels_same_form": len(forms) - len(set(forms)),
        "seconds": round(sum(run["seconds"] for run in runs), 1),
        "seconds_of_cxx": round(sum(run["cxx"]["seconds"] for run in runs), 1),
    }
    policies = {
        "forms seen": replay(runs, found, unseen_forms(args.sampled)),
        "sampled only": replay(runs, found, sampled_only(args.sampled)),
    }
    print(json.dumps(facts))
    head = ["policy", "programs skipped", "pace (1: one tier)", "findings lost", "newly reached by skipped (at most)"]
    print(table([head, *(total.row(name) for name, total in policies.items())]))
    save("tiers", "python -m benchmarks.tiers DIR", {**facts, **{key: vars(item) for key, item in policies.items()}})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
