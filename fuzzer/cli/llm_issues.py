"""``eddy knowledge import-issues --llm``: the imported issues read by a language model as well."""

from __future__ import annotations

import argparse
import asyncio
import json
import sqlite3
import sys
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzer.cli import llm
from fuzzer.exits import Exit
from fuzzer.knowledge.issues import Issue
from fuzzer.llm import issues as tiers
from fuzzer.llm.model import Model
from fuzzer.llm.settings import Budget
from fuzzer.screen import printable
from fuzzer.store import atomic

_SAY_SECONDS = 10.0
_TOKENS = 500_000  # unless a budget says otherwise: some two hundred issues


def add_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("language model")
    group.add_argument(
        "--llm", action="store_true", help="screen, classify and explain them with a model too → INDEX.llm/"
    )
    llm.add_endpoint_options(group)


def read(args: argparse.Namespace, issues: Sequence[Issue]) -> tuple[dict[str, Any], int]:
    """Read the issues that were just imported into ``args.out``, as far as the budget goes.

    Returns:
        {"llm": what was done and spent} for ``--json``, and the exit status: 2 when the model could not finish.

    Raises:
        UserError: endpoint or model is not named.
    """
    folder = Path(f"{args.out}.llm")
    settings = llm.settings_of(args)
    if settings.budget.nothing:
        settings = replace(settings, budget=Budget(tokens=_TOKENS))
    model = llm.model_of(settings, llm.tell, folder)
    reading = asyncio.run(_read(model, issues))
    rows = [row.to_map() for row in reading.issues.values() if row.relevant is not None]
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "issues.jsonl"
    atomic.write_text(file, "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows))
    verified = _verified(Path(args.out))
    check = tiers.sample(reading, verified)
    agreement = tiers.agreement(reading, issues, verified)
    spent = model.ledger.total
    told: dict[str, Any] = {**reading.counts(), "useless": reading.useless, "ended": reading.ended}
    told |= {"tokens": spent.tokens, "money": round(spent.money, 6), "file": str(file)}
    told |= {"agreement": agreement, "check": [row.to_map() for row in check]}
    if not args.json:
        _tell(args, reading, check, told)
    if reading.ended:
        why = f"the model cannot be asked any more: {reading.ended}; the same command goes on where it stopped"
        print(printable(f"eddy knowledge: {why}"), file=sys.stderr)
    return {"llm": told}, Exit.USAGE if reading.ended else Exit.DONE


async def _read(model: Model, issues: Sequence[Issue]) -> tiers.Reading:
    told = 0.0

    def say(line: str) -> None:
        nonlocal told
        if time.monotonic() - told > _SAY_SECONDS:
            told = time.monotonic()
            print(f"… {line}", file=sys.stderr, flush=True)

    try:
        return await tiers.read(model, issues, say)
    finally:
        await model.close()


def _verified(index: Path) -> dict[int, tuple[str, str]]:
    """What a person said of indexed issues."""
    with closing(sqlite3.connect(f"{index.absolute().as_uri()}?mode=ro", uri=True)) as base:
        rows = base.execute("SELECT number, task, cause FROM issues WHERE human_verified")
        return {number: (task, cause) for number, task, cause in rows}


def _tell(args: argparse.Namespace, reading: tiers.Reading, check: Sequence[tiers.Read], told: dict[str, Any]) -> None:
    counts = ", ".join(f"{number} {name}" for name, number in reading.counts().items())
    print(f"model: {counts}; {reading.useless} questions in vain; {told['tokens']} tokens → {told['file']}")
    share = told["agreement"]
    line = f"It agrees with the rules on {share['task_with_rules']:.0%} of tasks"
    line += f" and {share['cause_with_rules']:.0%} of causes"
    if share["verified"]:
        line += f"; with a person on {share['task_with_person']:.0%} and {share['cause_with_person']:.0%}"
        line += f" of {share['verified']:.0f} verified"
    print(f"{line}. All of it is unverified.")
    if check:
        print("Please check these, and say what they are:")
    for row in check:
        print(printable(f"  #{row.number:<8} {row.task}, {row.cause}: {row.summary}"))
        print(f"           eddy knowledge verify {row.number} --index {args.out} --task {row.task} --cause {row.cause}")
