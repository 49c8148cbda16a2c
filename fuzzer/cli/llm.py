"""Options about the language model, and the model that they describe; the verb itself is ``llm_verb``."""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzer.coverage_report import target_files
from fuzzer.exits import UserError
from fuzzer.knowledge.operators import Operators
from fuzzer.llm.author import Author
from fuzzer.llm.capability import Level
from fuzzer.llm.client import Client
from fuzzer.llm.dry_run import DryRun
from fuzzer.llm.engine import LLMEngine
from fuzzer.llm.exchange import Replay
from fuzzer.llm.ledger import Ledger
from fuzzer.llm.model import Asker, Model
from fuzzer.llm.prompts import FORMS
from fuzzer.llm.settings import FORMS as CHOICES
from fuzzer.llm.settings import KEY_VARIABLE, LANGUAGES, Budget, Price, Redactor, Settings, key_of
from fuzzer.screen import printable
from fuzzer.store.directory import CampaignDirectory
from fuzzer.worker import Target

ENGINES = ("template", "llm", "mixed")
Note = Callable[[str, str], None]


def add_fuzz_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("language model")
    group.add_argument("--engine", choices=ENGINES, help="who writes programs (default: template, with mutations)")
    add_endpoint_options(group)
    group.add_argument("--llm-form", choices=CHOICES, help="steps suits small models; both: an arm chooses (default)")
    group.add_argument("--llm-replay", metavar="DIR", help="take answers from the log of campaign DIR, ask nobody")
    group.add_argument("--llm-dry-run", action="store_true", help="write what would be sent to llm/would-send.jsonl")


def add_endpoint_options(group: Any) -> None:
    """Endpoint, model, budget, price, language."""
    group.add_argument("--llm-endpoint", metavar="URL", help=f"OpenAI-compatible; the key comes from ${KEY_VARIABLE}")
    group.add_argument("--llm-model", metavar="NAME", help="model to ask")
    group.add_argument("--llm-budget", metavar="N", help="200k or 2M,100k/h tokens; 5usd or $5,$1/h money (default: 0)")
    group.add_argument("--llm-price", metavar="IN,OUT", help="money per million tokens, for budgets in money")
    group.add_argument("--llm-language", choices=LANGUAGES, help="of worded output (default: en)")


def settings_of(args: argparse.Namespace, stored: Mapping[str, Any] | None = None) -> Settings:
    """What was stored, with what is given now on top. Raises ``UserError``."""
    settings = Settings.from_map(stored or {})
    changes: dict[str, Any] = {
        "endpoint": args.llm_endpoint,
        "model": args.llm_model,
        "budget": Budget.parse(args.llm_budget) if args.llm_budget else None,
        "price": Price.parse(args.llm_price) if args.llm_price else None,
        "language": args.llm_language,
        "form": getattr(args, "llm_form", None),
    }
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})


def config_of(args: argparse.Namespace) -> dict[str, Any]:
    """Entries for ``campaign.toml`` of a new campaign. Raises ``UserError`` for what cannot work."""
    engine = args.engine or "template"
    if engine == "template":
        given = [name for name in ("endpoint", "model", "budget", "replay") if getattr(args, f"llm_{name}")]
        if given:
            raise UserError(f"--llm-{given[0]} is for --engine llm or mixed; add one of them")
        return {}
    settings = settings_of(args)
    _check(settings, args)
    return {"engine": engine, "llm": settings.to_map()}


def _check(settings: Settings, args: argparse.Namespace) -> None:
    if args.llm_replay:
        Replay(Path(args.llm_replay))
    elif not settings.endpoint or not settings.model:
        raise UserError("a language model needs --llm-endpoint URL and --llm-model NAME (or --llm-replay DIR)")
    elif settings.budget.nothing and not args.llm_dry_run:
        raise UserError("nothing is asked without a budget: --llm-budget 200k (tokens) or 5usd with --llm-price IN,OUT")


def engine_of(
    directory: CampaignDirectory,
    args: argparse.Namespace,
    operators: Operators,
    targets: tuple[Target, ...],
    no_clock: bool,
    note: Note,
) -> LLMEngine | None:
    """The engine that the directory and the options ask for; None for ``template``."""
    chosen = args.engine or str(directory.config.get("engine", "template"))
    if chosen == "template":
        return None
    settings = settings_of(args, directory.config.get("llm", {}))
    _check(settings, args)
    replay = Replay(Path(args.llm_replay)) if args.llm_replay else None
    if replay is not None and not args.llm_model:
        settings = replace(settings, model=replay.model)
    model = _model(settings, directory.llm, replay, args.llm_dry_run, note)
    forms = FORMS if settings.form == "both" else (settings.form,)
    author = Author(settings, forms, functools.partial(_lowerings, targets[0]))
    return LLMEngine(model, author, operators, directory.llm, always=chosen == "llm", in_turn=no_clock)


def model_of(settings: Settings, note: Note, folder: Path | None = None) -> Model:
    """A model outside a campaign's loop.

    Args:
        folder: where ledger, log and cache are kept and continued; None keeps nothing.

    Raises:
        UserError: endpoint or model is not named.
    """
    if not settings.endpoint or not settings.model:
        raise UserError("name the endpoint and the model: --llm-endpoint URL --llm-model NAME")
    return _model(settings, folder, None, False, note)


def tell(kind: str, text: str) -> None:
    """A ``Note`` for people: on standard error."""
    print(f"{kind}: {printable(text)}", file=sys.stderr, flush=True)


def _model(settings: Settings, folder: Path | None, replay: Replay | None, dry: bool, note: Note) -> Model:
    key = key_of(settings.endpoint) if settings.endpoint else ""
    client: Asker | None = None
    if dry and folder is not None:
        client = DryRun(settings, folder)
        settings = replace(settings, budget=Budget(tokens=float("inf")))
    elif replay is None:
        client = Client(settings, key)
    ledger = Ledger(settings.budget, settings.price, folder / "ledger.jsonl" if folder and not dry else None)
    model = Model(settings, folder, client, ledger, Redactor(key), replay, note=note)
    if dry:
        model.level = Level.JSON_SCHEMA  # what a server would be asked first
    return model


@functools.lru_cache(maxsize=1)
def _lowerings(target: Target) -> str:
    """The text of the target's own lowerings; "" where it has none to read."""
    if target.fake:
        return ""
    try:
        return target_files.find(target.python).source("torch/_inductor/lowering.py").read_text("utf-8")
    except (UserError, OSError, UnicodeDecodeError):
        return ""
