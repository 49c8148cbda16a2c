"""Puts a coverage report together: reads the campaign and the target's files, and calls the pure parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from fuzzer.coverage_report import baseline, target_files
from fuzzer.coverage_report.cxx_names import demangler
from fuzzer.coverage_report.events_part import events_part, read_breaks
from fuzzer.coverage_report.evidence import Evidence
from fuzzer.coverage_report.features_part import features_part
from fuzzer.coverage_report.native_part import Library, native_part, read_libraries
from fuzzer.coverage_report.python_part import python_part
from fuzzer.coverage_report.sources import Source, read_registrations, read_sources
from fuzzer.coverage_report.target_files import TargetFiles
from fuzzer.exits import UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.known_coverage import Coverage
from fuzzer.store import baseline as start_up
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.stats import read_stats
from fuzzer.worker import Target

#: Parts of a report, in the order in which a person reads them.
PARTS = ("python", "native", "events", "features")
_LIBRARIES = ("libtorch_cpu", "libtorch_python", "libc10")


@dataclass
class Covered:
    """A campaign with what is known of its target. ``notes`` are lines for a person: what is missing, and why.

    ``files`` is None where the target's torch is gone or is another one now, ``start_up`` where it was not measured.
    """

    directory: CampaignDirectory
    evidence: Evidence
    torch: str
    files: TargetFiles | None
    start_up: Coverage | None
    notes: list[str] = field(default_factory=list)

    @cached_property
    def sources(self) -> dict[str, Source]:
        return read_sources(self.files) if self.files else {}

    @cached_property
    def libraries(self) -> dict[str, Library]:
        names = sorted({*_LIBRARIES, *self.evidence.known.files("native")})
        return read_libraries(self.files, names) if self.files else {}

    def start_up_of(self, domain: str) -> dict[str, set[int]] | None:
        if self.start_up is None:
            return None
        return {file: set(ids) for file, ids in self.start_up.get(domain, {}).items()}

    def all_of(self, domain: str) -> dict[str, set[int]]:
        """Ids that are known to have been reached, with those of start-up where it was measured."""
        every = self.evidence.reached(domain)
        for file, ids in (self.start_up_of(domain) or {}).items():
            every[file] = every.get(file, set()) | ids
        return every

    @property
    def operators(self) -> Operators:
        derived = self.directory.operators
        return Operators.load_extract(derived if derived.exists() else None)


def open_campaign(
    path: str, python: str | None, may_start: bool, scratch: Path, progress: Callable[[str], None] = lambda line: None
) -> Covered:
    """Read a campaign; find its target's files; take the stored start-up coverage, or measure it (``may_start``).

    ``python`` names another interpreter than the campaign's first one.

    Raises:
        UserError: no campaign at ``path``; ``python`` was named and has no torch.
    """
    directory = CampaignDirectory.open(path)
    evidence = Evidence.read(directory)
    torch = str(read_stats(directory.fuzzer_stats).get("target_torch", ""))
    covered = Covered(directory, evidence, torch, None, None)
    configured = [str(item) for item in directory.config.get("targets", ())]
    if len(set(configured)) > 1:
        covered.notes.append(
            f"the campaign had {len(set(configured))} targets; names are those of {python or configured[0]}"
        )
    chosen = python or (configured[0] if configured else "")
    try:
        files = target_files.find(chosen)
    except UserError as error:
        if python:
            raise
        covered.notes.append(f"{error}; without it nothing is named and nothing can be called never reached")
        return covered
    if torch and files.version != torch:
        covered.notes.append(
            f"{chosen} has torch {files.version or 'of no known version'} now, the campaign ran {torch}: "
            "lines and offsets of another build name nothing; pass --target"
        )
        return covered
    covered.files = files
    covered.start_up = start_up.stored(directory, files.version)
    if covered.start_up is None and may_start:
        covered.start_up = _measured(covered, chosen, scratch, progress)
    if covered.start_up is None:
        covered.notes.append(
            "what start-up alone covers was not measured: what only start-up reaches counts as never reached"
        )
    return covered


def _measured(covered: Covered, python: str, scratch: Path, progress: Callable[[str], None]) -> Coverage | None:
    assert covered.files is not None
    device = str(covered.directory.config.get("device", "cpu"))
    try:
        progress("measuring what start-up alone covers (once a campaign)")
        coverage, version = baseline.measure(Target(python, device), scratch, progress)
    except UserError as error:
        covered.notes.append(str(error))
        return None
    if version != covered.files.version:
        return None
    start_up.keep(covered.directory, version, coverage)
    return coverage


def report(covered: Covered, parts: tuple[str, ...] = PARTS) -> dict[str, Any]:
    """The whole report as plain data: ``directory, torch, programs, start_up_known, notes`` and the asked parts."""
    evidence = covered.evidence
    made: dict[str, Any] = {
        "directory": str(covered.directory.path),
        "torch": covered.torch,
        "programs": len(evidence.runs),
        "start_up_known": covered.start_up is not None,
    }
    if "python" in parts:
        made["python"] = python_part(evidence.reached("python"), covered.start_up_of("python"), covered.sources)
    if "native" in parts:
        made["native"] = native_part(
            evidence.reached("native"), covered.start_up_of("native"), covered.libraries, evidence.runs, demangler()
        )
    if "events" in parts:
        made["events"] = events_part(
            evidence,
            covered.all_of("python"),
            covered.sources,
            read_registrations(covered.files) if covered.files else (),
            covered.operators,
            read_breaks(covered.files) if covered.files else (),
        )
    if "features" in parts:
        made["features"] = features_part(evidence.runs, FeatureSpace.load().features, _namespaces(covered))
    made["notes"] = covered.notes
    return made


def _namespaces(covered: Covered) -> Mapping[str, Mapping[int, str]]:
    reached: Mapping[str, Set[int]] = covered.evidence.reached("native")
    found = {}
    for name, library in covered.libraries.items():
        spaces = library.namespaces()
        found[name] = {offset: spaces[offset] for offset in reached.get(name, ()) if offset in spaces}
    return found
