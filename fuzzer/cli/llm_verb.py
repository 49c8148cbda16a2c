"""``eddy llm``: try an endpoint, see what was spent, ask about findings, serve a small model."""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import replace
from typing import Any

from fuzzer.cli import llm, llm_findings
from fuzzer.llm import local
from fuzzer.llm.ledger import Ledger
from fuzzer.llm.model import Model, NoAnswer
from fuzzer.llm.question import Question
from fuzzer.llm.settings import Budget, Settings
from fuzzer.store.directory import CampaignDirectory


def add(parsers: Any) -> None:
    parser = parsers.add_parser("llm", help="language models: try an endpoint, see what was spent, explain findings")
    actions = parser.add_subparsers(dest="action", required=True, metavar="ACTION")
    check = actions.add_parser("check", help="what an endpoint can do, with one sample call")
    llm.add_endpoint_options(check)
    check.add_argument("--json", action="store_true", help="machine-readable output on standard output")
    check.set_defaults(run=run_check)
    ledger = actions.add_parser("ledger", help="tokens and money that campaign DIR spent, by prompt family")
    ledger.add_argument("dir", metavar="DIR")
    ledger.add_argument("--json", action="store_true", help="machine-readable output on standard output")
    ledger.set_defaults(run=run_ledger)
    llm_findings.add_actions(actions)
    serve = actions.add_parser("serve", help="serve a small model on loopback, on one thread, until Ctrl-C")
    local.add_options(serve)
    serve.set_defaults(run=lambda args: local.run(args.gguf, args.port))


def run_check(args: argparse.Namespace) -> int:
    """Some five short requests, held to 20,000 tokens unless a budget says otherwise."""
    settings = llm.settings_of(args)
    if settings.budget.nothing:
        settings = replace(settings, budget=Budget(tokens=20_000))
    model = llm.model_of(settings, llm.tell)
    result = asyncio.run(_checked(model))
    if args.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:16} {value}")
    return 0 if result["ok"] else 2


async def _checked(model: Model) -> dict[str, Any]:
    result: dict[str, Any] = {"ok": False, "endpoint": model.settings.endpoint, "model": model.settings.model}
    try:
        result["structured"] = (await model.capability()).name.lower()
        answer = await model.ask(Question("check", "You answer briefly.", "Name one PyTorch operator.", None, 60))
        total = model.ledger.total
        result |= {"ok": True, "answer": answer.text[:120], "seconds": answer.seconds, "tokens": total.tokens}
        typical = model.settings.price.of(model.settings.context_tokens, model.settings.answer_tokens / 2)
        result |= {"money": round(total.money, 6), "typical_call_money": round(typical, 6)}
    except NoAnswer as none:
        result["error"] = str(none)
    finally:
        await model.close()
    return result


def run_ledger(args: argparse.Namespace) -> int:
    directory = CampaignDirectory.open(args.dir)
    settings = Settings.from_map(directory.config.get("llm", {}))
    ledger = Ledger.read(settings.price, directory.llm / "ledger.jsonl")
    rows = {family: {**vars(spent), "tokens": spent.tokens} for family, spent in sorted(ledger.families.items())}
    rows["total"] = {**vars(ledger.total), "tokens": ledger.total.tokens}
    if args.json:
        print(json.dumps(rows))
        return 0
    print(f"{'family':24} {'requests':>9} {'failures':>9} {'tokens in':>10} {'out':>9} {'money':>9}")
    for family, row in rows.items():
        print(
            f"{family:24} {row['requests']:9} {row['failures']:9} {row['tokens_in']:10} {row['tokens_out']:9} "
            f"{row['money']:9.4f}"
        )
    return 0
