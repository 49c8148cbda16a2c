"""The last step of triage, which takes all findings together: groups, nearest imported issues, classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzer.classify import classify
from fuzzer.exits import UserError
from fuzzer.finding import Finding, State
from fuzzer.grouping import group
from fuzzer.knowledge.issues import IssueIndex
from fuzzer.nearest import nearest
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.groups import decided


def conclude(
    directory: CampaignDirectory, store: FindingStore, issues: Path, warn: Callable[[str], None] = lambda text: None
) -> None:
    """Note of every finding its group, its class and what it looks like; writes all reports anew.

    ``issues`` is an index of imported issues, which need not be there; ``warn`` hears why one cannot be read.
    """
    findings = [item for item in store.load_all() if item.state is not State.FLAKY]
    by_major = {item.signature.major: item for item in findings}
    similar = _similar(findings, issues, warn)
    for made in group(findings, decided(directory)):
        for major in made.members:
            finding = by_major[major]
            told = {key: item for key, item in finding.triage.items() if key != "similar"}
            others = (by_major[other] for other in made.members if other != major)
            told["group"] = [folder.name if (folder := store.folder(item)) else item.sig8 for item in others]
            if similar.get(major):
                told["similar"] = similar[major]
            told["class"] = classify(finding).to_map()
            store.save(replace(finding, triage=told))


def _similar(findings: Sequence[Finding], path: Path, warn: Callable[[str], None]) -> dict[str, list[dict[str, Any]]]:
    """Imported issues that look like each finding, by major signature; none where none were imported."""
    if not path.exists():
        return {}
    try:
        with IssueIndex(path) as index:
            return {item.signature.major: nearest(item, index) for item in findings}
    except UserError as error:
        warn(str(error))
        return {}
