"""All that the page shows, read from a campaign directory, running or not. Takes no lock and writes nothing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.engines.idioms import Knowledge
from fuzzer.exits import UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.finding import Finding
from fuzzer.knowledge.operators import Operators
from fuzzer.labels import Labels
from fuzzer.loop_state import LoopState
from fuzzer.page.series import Series, read_plot
from fuzzer.page.tally import Tally
from fuzzer.severity import by_severity
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import Snapshot, read_journal
from fuzzer.store.labels import LabelStore
from fuzzer.store.stats import Events, read_status

#: Columns of ``plot_data`` that are drawn.
PLOTTED = (
    "execs_done", "operators_executed", "coverage_native", "coverage_python", "coverage_events", "coverage_pairs",
    "findings_confirmed", "findings_debatable", "findings_known", "findings_flaky",
)  # fmt: skip

_EVENTS_KEPT = 40


@dataclass(frozen=True)
class CampaignData:
    """A campaign as it stands.

    Attributes:
        status: see ``store.stats.read_status``.
        state: what the loop had learnt; None where snapshot and journal could not be read.
        findings: by severity. ``folders`` and ``labels`` go by major signature.
        events: warnings of the campaign, the latest last.
        problems: what could not be read, one line each.
    """

    directory: CampaignDirectory
    status: Mapping[str, Any]
    series: Series
    state: LoopState | None
    tally: Tally
    findings: tuple[Finding, ...]
    folders: Mapping[str, Path]
    labels: Labels
    events: tuple[Mapping[str, Any], ...]
    problems: tuple[str, ...]


def read_campaign(path: str | os.PathLike[str]) -> CampaignData:
    """Read everything. What is damaged is named in ``problems``; raises ``UserError`` where there is no campaign."""
    directory = CampaignDirectory.open(path)
    problems: list[str] = []
    store = FindingStore(directory)
    findings = by_severity(store.load_all())
    problems += dict.fromkeys(store.warnings)
    labels = Labels()
    try:
        labels = LabelStore(directory).read()
    except UserError as error:
        problems.append(str(error))
    state, tally = _learnt(directory, problems)
    events = deque(
        (event for event in Events(directory.events).read() if event.get("kind") == "warning"), maxlen=_EVENTS_KEPT
    )
    return CampaignData(
        directory=directory,
        status=read_status(directory),
        series=read_plot(directory.plot_data, PLOTTED),
        state=state,
        tally=tally,
        findings=tuple(findings),
        folders={item.signature.major: folder for item in findings if (folder := store.folder(item))},
        labels=labels,
        events=tuple(events),
        problems=tuple(problems),
    )


def _operators(directory: CampaignDirectory) -> Operators:
    return Operators.load_extract(directory.operators if directory.operators.exists() else None)


def _learnt(directory: CampaignDirectory, problems: list[str]) -> tuple[LoopState | None, Tally]:
    """The loop's state from snapshot and journal, and the tally of all runs, in one pass over the journal."""
    tally = Tally()
    seed = directory.config.get("seed", 0)
    knowledge = Knowledge.without(directory.config.get("without", ()))
    state: LoopState | None = LoopState(_operators(directory), FeatureSpace.load(), seed, knowledge=knowledge)
    if not directory.journal.exists():
        return state, tally
    assert state is not None
    snapshot = Snapshot(directory.snapshot)
    loaded, offset = snapshot.read(directory.journal.stat().st_size), 0
    problems += snapshot.warnings
    if loaded is not None:
        try:
            state.restore(loaded[0])
            offset = loaded[1]
        except (KeyError, TypeError, ValueError) as error:
            problems.append(f"{directory.snapshot}: of another version ({error!r}); the journal is replayed")
            state = LoopState(state.operators, state.space, seed, knowledge=knowledge)
    for after, record in read_journal(directory.journal):
        try:
            tally.take(record)
            # Plans change what comes next, not what was learnt, and deciding is the slow part of a replay.
            if state is not None and after > offset and record.get("t") != "plan":
                state.apply(record)
        except (KeyError, TypeError, ValueError, AssertionError) as error:
            problems.append(f"{directory.journal}: the record before byte {after} cannot be read ({error!r})")
            return None, tally
    return state, tally
