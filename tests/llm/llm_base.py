"""A model on loopback, and campaigns on the fake harness that use it."""

from __future__ import annotations

import asyncio
import functools
from pathlib import Path
from typing import Any

from loopback import KEY, Loopback

from fuzzer.campaign import Campaign, CampaignOptions
from fuzzer.knowledge.operators import Operators
from fuzzer.known_issues import KnownIssues
from fuzzer.llm.author import Author
from fuzzer.llm.client import Client
from fuzzer.llm.engine import LLMEngine
from fuzzer.llm.exchange import Replay
from fuzzer.llm.ledger import Ledger
from fuzzer.llm.model import Model
from fuzzer.llm.outage import Outage
from fuzzer.llm.prompts import FORMS
from fuzzer.llm.settings import Budget, Redactor, Settings
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal
from fuzzer.worker import Target

FAKE = (Target(fake=True),)
PLENTY = Budget(tokens=10_000_000)


@functools.cache
def operators() -> Operators:
    return Operators.load_extract()


def run(made: Campaign) -> str:
    with made.directory.lock():
        return asyncio.run(asyncio.wait_for(made.run(), 600.0))


def records(path: Path) -> list[dict[str, Any]]:
    return [record for _offset, record in read_journal(CampaignDirectory.open(path).journal)]


def settings(server: Loopback, **changes: Any) -> Settings:
    plain = {"model": "toy", "budget": PLENTY, "timeout": 5.0, "requests_per_minute": 1e6, "answer_tokens": 300}
    return Settings(endpoint=server.url, **{**plain, **changes})


def model(server: Loopback, folder: Path, replay: Replay | None = None, **changes: Any) -> Model:
    chosen = settings(server, **changes)
    client = None if replay else Client(chosen, KEY)
    ledger = Ledger(chosen.budget, chosen.price, folder / "ledger.jsonl")
    return Model(chosen, folder, client, ledger, Redactor(KEY), replay, Outage(first=0.02))


def campaign(
    path: Path,
    server: Loopback,
    engine: str = "mixed",
    replay: Replay | None = None,
    forms: tuple[str, ...] = FORMS,
    resume: bool = False,
    llm_options: dict[str, Any] | None = None,
    **options: Any,
) -> Campaign:
    """A campaign of the fake harness with the loopback model."""
    chosen: dict[str, Any] = {"seed": 1, "targets": FAKE, "limits": {"stage_seconds": 0.5, "eager_seconds": 0.5}}
    chosen |= options
    directory = CampaignDirectory.open(path) if resume else CampaignDirectory.create(path, {"seed": chosen["seed"]})
    directory.start()
    asker = model(server, directory.llm, replay, **(llm_options or {}))
    author = Author(asker.settings, forms, functools.partial(str, ""))
    writer = LLMEngine(
        asker, author, operators(), directory.llm, always=engine == "llm", in_turn=bool(chosen.get("no_clock"))
    )
    made = Campaign(directory, CampaignOptions(**chosen), operators(), KnownIssues([]), llm=writer)
    if resume:
        made.recover()
    return made
