"""``eddy seeds from-issue``: a pasted bug report as a program, with the help of a language model."""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from fuzzer.cli import common, llm
from fuzzer.examine import Examined, examine
from fuzzer.exits import Exit, UserError
from fuzzer.features.detect import default_space
from fuzzer.llm.from_issue import NoJson, Reproduced, reproduce
from fuzzer.llm.model import NoAnswer
from fuzzer.llm.settings import Budget
from fuzzer.program import Program
from fuzzer.store import atomic
from fuzzer.worker import Target, Worker, WorkerOptions

_TOKENS = 100_000  # unless a budget says otherwise


def add(actions: Any) -> None:
    """Add the action to the parser of ``eddy seeds``."""
    parser = actions.add_parser("from-issue", help="make a program of a pasted bug report, with a language model")
    parser.add_argument("file", metavar="FILE", help="text of the report; - is standard input")
    parser.add_argument("--out", metavar="FILE", help="write the program there (default: standard output)")
    parser.add_argument("--tries", type=common.positive, default=5, metavar="N", help="at most N programs (default: 5)")
    llm.add_endpoint_options(parser)
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    """Exit 0 with a program that shows the symptom, 5 without."""
    issue = _read(args.file)
    settings = llm.settings_of(args)
    if settings.budget.nothing:
        settings = replace(settings, budget=Budget(tokens=_TOKENS))
    model = llm.model_of(settings, lambda kind, text: print(f"{kind}: {text}", file=sys.stderr))
    try:
        found = asyncio.run(_reproduced(model, issue, common.targets(args)[0], args.tries))
    except NoAnswer as none:
        raise UserError(f"the model cannot be asked: {none}; try `eddy llm check`") from None
    except NoJson as none:
        raise UserError(f"the model cannot sort this report ({none}); take a stronger one") from None
    _tell(found, args)
    return Exit.DONE if found.program is not None else Exit.NOT_REPRODUCED


def _read(file: str) -> str:
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text("utf-8", "replace")
    except OSError as error:
        raise UserError(f"{file}: cannot be read ({error.strerror})") from None
    if not text.strip():
        raise UserError(f"{file}: is empty; paste the report into it")
    return text


async def _reproduced(model: Any, issue: str, target: Target, tries: int) -> Reproduced:
    operators = common.load_operators()
    try:
        with common.scratch_folder() as folder:
            worker = Worker(target, folder / "worker", WorkerOptions(coverage=()))
            await worker.start()

            async def judged(program: Program) -> Examined:
                return await examine(worker, program)

            try:
                return await reproduce(model, issue, operators, default_space(), judged, tries)
            finally:
                await worker.stop()
    finally:
        await model.close()


def _tell(found: Reproduced, args: argparse.Namespace) -> None:
    program = found.program or found.closest
    if program is not None and args.out:
        atomic.write_text(Path(args.out), program.text)
    if args.json:
        attempts = [{"stage": attempt.stage, "why": attempt.why} for attempt in found.attempts]
        result = {"reproduced": found.program is not None, "verdict": found.verdict, "attempts": attempts}
        result |= {"symptom": found.classified.symptom, "summary": found.classified.summary}
        print(json.dumps({**result, "program": program.text if program else ""}))
        return
    print(f"report: {_line(found.classified.summary)} ({found.classified.symptom})", file=sys.stderr)
    for number, attempt in enumerate(found.attempts, 1):
        print(f"try {number}: {attempt.stage}: {_line(attempt.why or found.verdict)}", file=sys.stderr)
    if found.program is None:
        nearest = " The closest program ran without it." if program is not None else ""
        print(f"NOT reproduced in {len(found.attempts)} tries.{nearest}", file=sys.stderr)
    if program is not None and not args.out:
        print(program.text, end="")


def _line(text: str) -> str:
    """One line that no terminal takes for more than text."""
    return "".join(letter if letter.isprintable() else " " for letter in text)[:200]
