"""Reduction and grouping: known failures hidden in long programs, and what comes back.

    python -m benchmarks.reduction [--count 15] [--copies 1] [--seed 0] [--budget 200] [--minutes 60]

Each failing case of the exam is spliced with filler to 20–30 statements and reduced. Told: the share that comes back to
at most 5 statements, whether the kind (and for refusals the signature) stayed, executions and seconds. With several
copies a case, the reduced copies are grouped, and the groups compared with the truth (pairwise precision, recall, F1).
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import dataclasses
import itertools
import random
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.results import save, table
from fuzzer.bisect import first_failing_backend
from fuzzer.cli.common import scratch_folder
from fuzzer.engines.mutate import MutationContext
from fuzzer.engines.mutate.splice import splice
from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.examine import Examined, examine
from fuzzer.exits import UserError
from fuzzer.finding import Finding, essential_facts
from fuzzer.grouping import group
from fuzzer.program import Program
from fuzzer.reduce.measure import statements
from fuzzer.signature import signature
from fuzzer.triage import final_signature, reduced
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

EXAM = Path(__file__).parent.parent / "corpus" / "exam"

#: Kinds that raise: their signature is an exception, and must stay.
_LOUD = frozenset({Kind.COMPILE_ERROR, Kind.EXTRA_CHECK, Kind.MISSING_CHECK})
_TRIES = 3
_SHORT = 5
_LENGTH = (20, 30)

#: Statements that every torch compiles rightly, over float32 tensors of 6 by 10.
_FILLER = (
    "torch.sin({a})", "{a} * 0.5", "{a} + {b}", "torch.nn.functional.relu({a})", "{a}.abs()", "torch.tanh({a})",
    "{a} - {b}", "{a}.clamp(-2, 2)", "torch.maximum({a}, {b})", "{a}.neg()", "torch.sigmoid({a})", "{a} * {b}",
)  # fmt: skip


@dataclass(frozen=True)
class Result:
    """One spliced program, reduced. Statements are counted in A-normal form."""

    case: str
    issue: str  # number of the real bug report; two cases of one report count neither as alike nor as different
    kind: str
    before: int
    after: int
    same: bool
    executions: int
    seconds: float
    finding: Finding


def filler(rng: random.Random, length: int) -> ProgramView:
    """A program of ``length`` statements that passes."""
    lines, bound = [], ["p", "q"]
    for number in range(length):
        parts = {"a": rng.choice(bound[-4:]), "b": rng.choice(bound)}
        lines.append(f"    w{number} = {rng.choice(_FILLER).format(**parts)}\n")
        bound.append(f"w{number}")
    text = (
        'import torch\n\nMETA = {"mode": "forward"}\n\n\ndef build_inputs():\n    p = torch.randn(6, 10)\n'
        f"    q = torch.randn(6, 10)\n    return p, q\n\n\ndef fn(p, q):\n{''.join(lines)}    return {bound[-1]}\n"
    )
    return ProgramView.of(Program.parse(text))


def hidden(case: Program, rng: random.Random) -> Program | None:
    """The case among 20 to 30 statements; None where it cannot be spliced.

    One filler follows the case and reads one of its values; statements of another stand between all of these.
    """
    try:
        view = ProgramView.of(case).normalise()
    except ViewError:
        return None
    wanted = rng.randint(*_LENGTH) - len(view.body)
    spliced = splice(view, MutationContext(rng, donor=filler(rng, max(1, wanted // 2))))
    if spliced is None:
        return None
    names = spliced.fresh_names()
    apart = filler(rng, max(1, wanted - wanted // 2))
    mapping = {name: next(names) for name in apart.bound_before(len(apart.body))}
    inputs = {name: mapping[name] for name in apart.inputs}
    apart = apart.rename(mapping).rename_build(inputs)
    places = sorted(rng.randrange(len(spliced.body) + 1) for _ in apart.body)
    body: list[Statement] = []
    waiting = list(zip(places, apart.body))
    for index, statement in enumerate((*spliced.body, None)):
        while waiting and waiting[0][0] <= index:
            body.append(waiting.pop(0)[1])
        if statement is not None:
            body.append(statement)
    whole = dataclasses.replace(
        spliced,
        build=spliced.build + apart.build,
        build_returns=dataclasses.replace(
            spliced.build_returns, items=spliced.build_returns.items + apart.build_returns.items
        ),
        params=spliced.params + apart.params,
        body=tuple(body),
        returns=dataclasses.replace(spliced.returns, items=spliced.returns.items + apart.returns.items),
    )
    try:
        return whole.to_program()
    except (UserError, SyntaxError):
        return None


def cases(count: int, seed: int) -> list[Program]:
    """Core cases that fail on the newest release of the table, hangs left out, in a drawn order."""
    with open(EXAM / "table.csv", encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["tier"] == "core"]
    rows = [row for row in rows if row["verdict_213"] not in ("pass", "timeout", "")]
    random.Random(seed).shuffle(rows)
    paths = [EXAM / "cases" / row["file"] for row in rows]
    return [Program.parse(path.read_text(encoding="utf-8"), path.name) for path in paths[:count]]


async def _one(worker: Worker, case: Program, seen: Examined, rng: random.Random, budget: int) -> Result | None:
    """Hide the case, reduce it; None where the hidden one does not fail as the case does."""
    for _try in range(_TRIES):
        long = hidden(case, rng)
        if long is None:
            continue
        found = await examine(worker, long)
        if found.verdict.kind is not seen.verdict.kind or found.verdict.debatable:
            continue
        started = time.monotonic()
        small = await reduced(worker, found.program, found.observation, found.verdict, budget)
        seconds = time.monotonic() - started
        same = small.verdict.kind is found.verdict.kind
        if small.verdict.kind in _LOUD:
            same &= signature(small.verdict, small.observation).major == found.signature.major
        backend = await first_failing_backend(worker, small.program, small.verdict)
        finding = Finding(
            final_signature(small.verdict, small.observation, {}, small.program),
            small.verdict.kind,
            small.program.text,
            stage=small.verdict.stage,
            facts=essential_facts(small.observation, small.verdict),
            triage={"backend": backend},
        )
        name, kind = case.source.split("_")[0], small.verdict.kind.value
        issue = str(case.meta.get("issue", ""))
        return Result(
            name,
            issue if issue.isdigit() else name,
            kind,
            statements(long),
            statements(small.program),
            same,
            small.executions,
            seconds,
            finding,
        )
    return None


async def measure_all(programs: Sequence[Program], copies: int, seed: int, budget: int, minutes: float) -> list[Result]:
    results: list[Result] = []
    deadline = time.monotonic() + 60 * minutes
    with scratch_folder() as folder:
        worker = Worker(Target(), folder / "worker", WorkerOptions(coverage=(), fast=True))
        try:
            await worker.start()
            for case in programs:
                if time.monotonic() > deadline:
                    print("… out of time", flush=True)
                    break
                seen = await examine(worker, case)
                if not seen.verdict.is_suspect or seen.verdict.debatable:
                    print(f"{case.source}: {seen.verdict.kind.value} here, left out", flush=True)
                    continue
                for copy in range(copies):
                    try:
                        made = await _one(worker, case, seen, random.Random(f"{seed} {case.id} {copy}"), budget)
                    except WorkerLost:
                        made = None
                    if made is None:
                        print(f"{case.source}: cannot be hidden, left out", flush=True)
                        continue
                    results.append(made)
                    told = f"{made.before} → {made.after} statements, {made.executions} executions"
                    print(f"{case.source}: {told}, {made.seconds:.0f} s, same: {made.same}", flush=True)
        finally:
            await worker.stop()
    return results


def pairwise(results: Sequence[Result]) -> dict[str, float]:
    """Precision, recall and F1 of "is the same bug" over pairs of reduced programs; equal signatures are one."""
    findings = {result.finding.signature.major: result.finding for result in results}
    of = {member: item.representative for item in group(findings.values()) for member in item.members}
    pairs = [
        (one.case == other.case, of[one.finding.signature.major] == of[other.finding.signature.major])
        for one, other in itertools.combinations(results, 2)
        if one.case == other.case or one.issue != other.issue
    ]
    taken = {
        (one.case, other.case, one.issue == other.issue)
        for one, other in itertools.combinations(results, 2)
        if one.case != other.case and of[one.finding.signature.major] == of[other.finding.signature.major]
    }
    for one_case, other_case, same_report in sorted(taken):
        print(f"taken for one bug: {one_case} and {other_case}, {'the same report' if same_report else 'two reports'}")
    right = sum(truth and said for truth, said in pairs)
    precision = right / max(1, sum(said for _truth, said in pairs))
    recall = right / max(1, sum(truth for truth, _said in pairs))
    return {"precision": precision, "recall": recall, "f1": 2 * right / max(1, sum(map(sum, pairs)))}


def summary(results: Sequence[Result]) -> dict[str, Any]:
    return {
        "programs": len(results),
        "cases": len({result.case for result in results}),
        "short": sum(result.after <= _SHORT for result in results) / len(results),
        "same": sum(result.same for result in results) / len(results),
        "median_before": statistics.median(result.before for result in results),
        "median_after": statistics.median(result.after for result in results),
        "median_executions": statistics.median(result.executions for result in results),
        "median_seconds": round(statistics.median(result.seconds for result in results), 1),
    }


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reduction")
    parser.add_argument("--count", type=int, default=15, help="cases")
    parser.add_argument("--copies", type=int, default=1, help="spliced programs a case; several measure grouping")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--budget", type=int, default=200, help="executions of one reduction")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no case after so many")
    args = parser.parse_args(argv)
    programs = cases(args.count, args.seed)
    results = asyncio.run(measure_all(programs, args.copies, args.seed, args.budget, args.minutes))
    if not results:
        print("nothing failed here")
        return 1
    numbers = summary(results)
    if args.copies > 1:
        numbers["grouping"] = pairwise(results)
    head = ["case", "kind", "before", "after", "same", "executions", "seconds"]
    rows = [[r.case, r.kind, r.before, r.after, r.same, r.executions, round(r.seconds)] for r in results]
    print(table([head, *rows]))
    print(numbers)
    command = f"python -m benchmarks.reduction --count {args.count} --copies {args.copies} --seed {args.seed}"
    save("reduction", command, {**numbers, "rows": [dict(zip(head, row)) for row in rows]})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
