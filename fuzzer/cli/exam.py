"""``eddy exam``: how well does the judge know real bugs?"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from pathlib import Path
from typing import Any

from fuzzer import exam
from fuzzer.bisect import first_failing_backend
from fuzzer.cli import common
from fuzzer.examine import examine
from fuzzer.exits import UserError
from fuzzer.worker import Target, Worker, WorkerOptions

DEFAULT = Path(exam.__file__).parent.parent / "corpus" / "exam"


def add(parsers: Any) -> None:
    parser = parsers.add_parser("exam", help="measure the judge on programs from real bug reports")
    parser.add_argument("dir", nargs="?", metavar="DIR", default=str(DEFAULT), help="folder with a table.csv")
    parser.add_argument("--only", metavar="ID,ID", help="some cases only")
    parser.add_argument("--stages", action="store_true", help="find the first failing backend of what is flagged, too")
    parser.add_argument("--workers", type=int, default=2, metavar="N", help="fork servers (default: 2)")
    parser.add_argument("-v", "--verbose", action="store_true", help="show every case, not only the disagreements")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    common.require_compiler()
    if args.workers < 1:
        raise UserError(f"--workers {args.workers}: give at least 1")
    columns: list[tuple[str, list[exam.Answer]]] = []
    for target in common.targets(args):
        torch, answers = asyncio.run(_run(target, args))
        columns.append((torch, answers))
        if args.json:
            print(json.dumps({"target": torch, **exam.summary(answers)}), flush=True)
    if args.json:
        return 0
    if len(columns) > 1:
        _print_matrix(columns, args.verbose)
    for torch, answers in columns:
        if len(columns) == 1:
            _print_answers(answers, args.verbose)
        _print_summary(torch, exam.summary(answers))
    return 0


async def _run(target: Target, args: argparse.Namespace) -> tuple[str, list[exam.Answer]]:
    answers: list[exam.Answer] = []
    with common.scratch_folder() as folder:
        workers = [Worker(target, folder / f"w{n}", WorkerOptions(coverage=())) for n in range(args.workers)]
        try:
            ready = (await asyncio.gather(*(worker.start() for worker in workers)))[0]
            torch = str(ready["target"]["torch"])
            cases = exam.load(Path(args.dir), torch, set(args.only.split(",")) if args.only else None)
            total = len(cases)
            waiting = list(reversed(cases))

            async def work(worker: Worker) -> None:
                while waiting:
                    case = waiting.pop()
                    answers.append(await _answer(worker, case, args.stages))
                    if not args.json and sys.stderr.isatty():
                        print(f"\r{len(answers)} of {total} cases ", end="", file=sys.stderr, flush=True)

            await asyncio.gather(*(work(worker) for worker in workers))
        finally:
            await asyncio.gather(*(worker.stop() for worker in workers))
    return torch, sorted(answers, key=lambda answer: answer.case.id)


async def _answer(worker: Worker, case: exam.Case, stages: bool) -> exam.Answer:
    started = time.monotonic()
    seen = await examine(worker, case.program)
    stage = ""
    if stages and seen.verdict.is_suspect:
        stage = await first_failing_backend(worker, case.program, seen.verdict)
    return exam.Answer(case, seen.verdict, stage, time.monotonic() - started)


def _print_answers(answers: list[exam.Answer], verbose: bool) -> None:
    for answer in answers:
        if verbose or answer.differs:
            expected = f"{answer.case.expected} {answer.case.expected_stage}"
            expected += " debatable" if answer.case.debatable else ""
            verdict = answer.verdict
            kind = f"{verdict.kind.value} {answer.stage} [{verdict.debatable}]"
            mark = "ok" if answer.agrees and (not answer.flagged or answer.right_kind) else "NO"
            print(f"  {mark} {answer.case.id}: expected {expected}; seen {kind} {verdict.reason[:110]}")
            for gate, outcome in verdict.gates if verbose or not answer.agrees else ():
                if outcome != "kept":
                    print(f"       {gate}: {outcome}")


def _print_matrix(columns: list[tuple[str, list[exam.Answer]]], verbose: bool) -> None:
    """Case by target: what was expected, and what was seen where that is something else."""
    by_target = [{answer.case.id: answer for answer in answers} for _torch, answers in columns]
    rows = []
    for name in sorted(set().union(*by_target)):
        found = [answers.get(name) for answers in by_target]
        if verbose or any(answer is not None and answer.differs for answer in found):
            rows.append([name, *("" if answer is None else _cell(answer) for answer in found)])
    head = ["case", *(torch for torch, _answers in columns)]
    widths = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(text.ljust(width) for text, width in zip(row, widths)).rstrip())


def _cell(answer: exam.Answer) -> str:
    expected = answer.case.expected + (" (debatable)" if answer.case.debatable else "")
    if not answer.differs:
        return expected
    seen = answer.verdict.kind.value + (f" ({answer.verdict.debatable})" if answer.verdict.debatable else "")
    stage = f" in {answer.stage} for {answer.case.expected_stage}" if answer.wrong_stage else ""
    return f"{expected} → {seen}{stage}"


def _print_summary(torch: str, figures: dict[str, Any]) -> None:
    print(
        f"torch {torch}: flagged {figures['flagged']} of {figures['failing']} failing, "
        f"right kind {figures['right_kind']}, "
        f"debatable classed {figures['debatable_classed']} of {figures['debatable']}, "
        f"controls flagged {figures['controls_flagged']} of {figures['controls']}"
        + (f", first failing stage right {figures['stages_right']} of {figures['stages']}" if figures["stages"] else "")
    )
