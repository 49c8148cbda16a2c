"""``eddy llm explain`` and ``eddy llm induce``: what a model makes of findings, always marked as its word."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzer.cli import common, llm
from fuzzer.exits import Exit, UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.finding import Finding, State
from fuzzer.knowledge import lint
from fuzzer.knowledge.patterns import Entry, default_entries, load_patterns
from fuzzer.llm.explain import explain, page, with_hypothesis
from fuzzer.llm.generalise import templates
from fuzzer.llm.induce import draft, induce
from fuzzer.llm.model import Model, NoAnswer
from fuzzer.llm.schema import NoJson
from fuzzer.llm.settings import Budget
from fuzzer.program import Program
from fuzzer.screen import printable
from fuzzer.severity import by_severity
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.worker import Target, Worker, WorkerOptions

_TOKENS = 100_000  # unless a budget says otherwise
_ASIDE = (State.SUSPECT, State.FLAKY, State.KNOWN, State.IGNORED)

Work = Callable[[Model, Finding], Awaitable[dict[str, Any]]]


def add_actions(actions: Any) -> None:
    about = "findings of campaign DIR (default: all that were confirmed and have none, the worst first)"
    tell = actions.add_parser("explain", help="ask for a root cause of findings; writes hypothesis.md beside report.md")
    tell.set_defaults(run=run_explain)
    make = actions.add_parser("induce", help="ask for the bug pattern behind findings; writes drafts to DIR/patterns")
    make.add_argument("--target", metavar="PYTHON", help="where examples are tried (default: the campaign's target)")
    make.set_defaults(run=run_induce)
    for parser in (tell, make):
        parser.add_argument("dir", metavar="DIR")
        parser.add_argument("id", metavar="ID", nargs="*", help=about)
        llm.add_endpoint_options(parser)
        parser.add_argument("--json", action="store_true", help="machine-readable output on standard output")


# -- explain --------------------------------------------------------------------------------------------------------


def run_explain(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    with directory.lock():
        store = FindingStore(directory)
        findings = _chosen(store, args.id, lambda finding: not finding.triage.get("hypothesis"))

        async def explained(model: Model, finding: Finding) -> dict[str, Any]:
            hypothesis = await explain(model, finding)
            folder = store.save(with_hypothesis(finding, hypothesis))
            atomic.write_text(folder / "hypothesis.md", page(finding, hypothesis))
            return {"hypothesis": hypothesis.text, "suspect": hypothesis.suspect, "file": str(folder / "hypothesis.md")}

        return _over(directory, args, findings, explained)


# -- induce ---------------------------------------------------------------------------------------------------------


def run_induce(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    folder = directory.path / "patterns"
    with directory.lock():
        drafts = list(load_patterns(folder).entries) if folder.is_dir() else []
        texts = [path.read_text(encoding="utf-8") for path in folder.glob("*.toml")] if folder.is_dir() else []
        findings = _chosen(
            FindingStore(directory), args.id, lambda one: not any(f"finding {one.sig8}." in text for text in texts)
        )
        return _over(directory, args, findings, _Inducing(directory, args.target, drafts).draft)


class _Inducing:
    def __init__(self, directory: CampaignDirectory, python: str | None, drafts: Sequence[Entry]) -> None:
        config = directory.config
        named = python or str(next(iter(config.get("targets", [])), ""))
        self.target = common.target(named, str(config.get("device", "cpu")))
        self.folder = directory.path / "patterns"
        self.entries = [*default_entries(), *drafts]
        self.operators = common.load_operators()

    async def draft(self, model: Model, finding: Finding) -> dict[str, Any]:
        """One draft, with the most general code whose example runs."""
        shapes = list(templates(Program.parse(finding.shown_text, finding.sig8)))
        taken = {entry.id for entry in self.entries}
        table = await induce(model, finding, self.operators, taken, shapes[0])
        entry: Entry | None = None
        faults: list[str] = []
        for shape in shapes:
            table |= shape
            entry, faults = await self._checked(draft(table, finding, model.settings.model, ()))
            if not faults:
                break
        text = draft(table, finding, model.settings.model, faults)
        self.folder.mkdir(exist_ok=True)
        path = self.folder / f"{table['id']}.toml"
        atomic.write_text(path, text)
        if entry is not None:
            self.entries.append(entry)
        return {"pattern": table["id"], "trigger": table["trigger"], "faults": faults, "file": str(path)}

    async def _checked(self, text: str) -> tuple[Entry | None, list[str]]:
        """The entry, None where it cannot be read; and what the linter and an eager run say against it."""
        with tempfile.TemporaryDirectory(prefix="eddy-") as folder:
            (Path(folder) / "draft.toml").write_text(text, encoding="utf-8")
            loaded = load_patterns(Path(folder))
        if not loaded.entries:
            return None, [fault.rpartition("draft.toml: ")[2] for fault in loaded.faults]
        (entry,) = loaded.entries
        space, names = FeatureSpace.load(), lint.operator_names(self.operators)
        found = lint.check([*self.entries, entry], space, self.operators.families, names)
        faults = [fault.text for fault in found if fault.entry == entry.id]
        async with _worker(self.target) as worker:
            faults += [fault.text for fault in await lint.run_examples([entry], worker, self.operators)]
        return entry, faults


@contextlib.asynccontextmanager
async def _worker(target: Target) -> AsyncIterator[Worker]:
    with common.scratch_folder() as folder:
        worker = Worker(target, folder / "worker", WorkerOptions(coverage=(), warm=False))
        try:
            await worker.start()
            yield worker
        finally:
            await worker.stop()


# -- both -----------------------------------------------------------------------------------------------------------


def _chosen(store: FindingStore, names: Sequence[str], wanting: Callable[[Finding], bool]) -> list[Finding]:
    if names:
        return [store.find(name) for name in names]
    return [item for item in by_severity(store.load_all()) if item.state not in _ASIDE and wanting(item)]


def _over(directory: CampaignDirectory, args: argparse.Namespace, findings: Sequence[Finding], work: Work) -> int:
    """Ask about one finding after another until the model cannot be asked any more; what was done stays."""
    settings = llm.settings_of(args, directory.config.get("llm", {}))
    if settings.budget.nothing:
        settings = replace(settings, budget=Budget(tokens=_TOKENS))
    model = llm.model_of(settings, llm.tell, directory.llm)
    rows, ended = asyncio.run(_asked(model, findings, work))
    if args.json:
        print(json.dumps({"rows": rows, "left": len(findings) - len(rows), "ended": ended}))
    else:
        for row in rows:
            told = row.get("error") or row.get("hypothesis") or f"{row['pattern']}: {row['trigger']}"
            print(printable(f"{row['finding']}  {told}"))
            for fault in row.get("faults", ()):
                print(printable(f"          linter: {fault}"))
        spent = model.ledger.total
        print(
            f"{len(rows)} of {len(findings)} findings; {spent.tokens} tokens spent in this campaign so far. Unverified!"
        )
    if ended:
        why = f"the model cannot be asked any more: {ended}; try `eddy llm check` or a larger --llm-budget"
        print(printable(f"eddy llm: {why}"), file=sys.stderr)
    return Exit.USAGE if ended else Exit.DONE


async def _asked(model: Model, findings: Sequence[Finding], work: Work) -> tuple[list[dict[str, Any]], str]:
    rows: list[dict[str, Any]] = []
    try:
        for finding in findings:
            row: dict[str, Any] = {"finding": finding.sig8}
            try:
                row |= await work(model, finding)
            except NoAnswer as none:
                if none.wait != 0.0:  # not this question's fault
                    return rows, str(none)
                row["error"] = str(none)
            except (NoJson, UserError) as none:
                row["error"] = str(none)
            rows.append(row)
    finally:
        await model.close()
    return rows, ""
