"""Campaigns on the fake harness: planted programs, journals to look into."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzer.campaign import Campaign, CampaignOptions
from fuzzer.engines.template import Written
from fuzzer.knowledge.operators import Operators
from fuzzer.known_issues import KnownIssues
from fuzzer.policy.plan import Plan
from fuzzer.program import Program
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal
from fuzzer.worker import Target

FAKE = (Target(fake=True),)


@functools.cache
def operators() -> Operators:
    return Operators.load_extract()


def planted(do: str, number: int = 0, **fake: Any) -> Program:
    """A program of which the fake harness makes what ``do`` says; programs of other numbers are other programs."""
    return Program.parse(
        f"""import torch

META = {{"mode": "forward", "fake": { ({"do": do, "coverage": [number], **fake})!r}}}


def build_inputs():
    return (torch.ones(2, {number + 1}),)


def fn(a):
    b = a.relu()
    return b
"""
    )


class Planted:
    """An engine that writes what it was given, over and over. ``after`` is told the number of programs so far."""

    def __init__(self, programs: Sequence[Program], after: Any = lambda count: None) -> None:
        self.programs = programs
        self.count = 0
        self.after = after

    async def write(self, plan: Plan, choose: Any, prober: Any) -> Written:
        self.count += 1
        self.after(self.count)
        return Written(self.programs[(self.count - 1) % len(self.programs)], ("relu",))


def campaign(path: Path, programs: Sequence[Program] | None = None, resume: bool = False, **options: Any) -> Campaign:
    """A campaign on the fake harness, new or resumed; with the template engine where no programs are planted."""
    options = {"seed": 1, "targets": FAKE, "limits": {"stage_seconds": 0.5, "eager_seconds": 0.5}, **options}
    directory = CampaignDirectory.open(path) if resume else CampaignDirectory.create(path, {"seed": options["seed"]})
    directory.start()
    made = Campaign(directory, CampaignOptions(**options), operators(), KnownIssues([]))
    if programs is not None:
        made.engine = Planted(programs)  # type: ignore[assignment]
        made.state.schedule._names["mutation"] = ()  # planted programs only
    if resume:
        made.recover()
    return made


def run(made: Campaign) -> str:
    with made.directory.lock():
        return asyncio.run(asyncio.wait_for(made.run(), 60.0))


def records(path: Path) -> list[dict[str, Any]]:
    return [record for _offset, record in read_journal(CampaignDirectory.open(path).journal)]
