"""Does compile time explode with a parameter? Told from a machine under load by CPU seconds at smaller parameters."""

from __future__ import annotations

import ast
import dataclasses
import math
from collections.abc import Sequence

from fuzzer.engines.statement import Statement
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.exits import UserError
from fuzzer.program import Program
from fuzzer.worker import Worker

#: Shares of the parameters at which compile time is measured, the smallest first.
SHARES = (0.2, 0.35, 0.5, 0.65, 0.8)
#: A measurement that takes longer ends the series: by then the growth has shown, or nothing has.
_SECONDS = 30.0
#: Literals below are counts of dimensions and the like, not sizes of work.
_SMALLEST = 8
#: Cost may grow with this power of the parameter before it counts as an explosion.
_POWER = 3.0

Point = tuple[float, float]  # (share of the parameters, CPU seconds of compiling)


async def measure(worker: Worker, program: Program) -> list[Point]:
    """CPU seconds of compiling the program with its integer literals scaled down; empty where it has none."""
    points: list[Point] = []
    for share in SHARES:
        smaller = scaled(program, share)
        if smaller is None:
            return []
        limits = {"stage_seconds": _SECONDS, "total_seconds": 2 * _SECONDS}
        seen = await worker.execute(smaller, f"share {share}", {"observe": False}, coverage=False, limits=limits)
        stage = seen.stage("compile")
        if seen.end.how == "timeout":
            points.append((share, max(seen.cpu, _SECONDS)))
            break
        if stage is None or stage.fault is not None:
            continue
        points.append((share, stage.cpu))
    return points


def explodes(points: Sequence[Point]) -> bool:
    """Cost beyond the fixed part (that of the smallest point) grows faster than the cube of the parameter."""
    if len(points) < 3:
        return False
    fixed = points[0][1]
    grown = [(share, cost - fixed) for share, cost in points[1:] if cost - fixed > 0.05]
    if len(grown) < 2:
        return len(grown) == 1 and grown[0][1] > 20 * max(fixed, 0.1)
    (small, low), (large, high) = grown[0], grown[-1]
    return math.log(high / low) > _POWER * math.log(large / small)


def told(points: Sequence[Point]) -> str:
    """The measurements in words."""
    return ", ".join(f"{cost:.1f} s at {100 * share:.0f} %" for share, cost in points)


def scaled(program: Program, share: float) -> Program | None:
    """The program with the integer literals of ``fn`` scaled; None where there is none to scale."""
    try:
        view = ProgramView.of(program).normalise()
        body = tuple(_scaled(statement, share) for statement in view.body)
        if body == view.body:
            return None
        return dataclasses.replace(view, body=body).to_program()
    except (ViewError, UserError, SyntaxError):
        return None


def _scaled(statement: Statement, share: float) -> Statement:
    done: set[int] = set()
    while True:
        for node in ast.walk(statement.node):
            plain = isinstance(node, ast.Constant) and type(node.value) is int
            if plain and node.value >= _SMALLEST and node.col_offset not in done:  # type: ignore[attr-defined]
                done.add(node.col_offset)  # type: ignore[attr-defined]
                smaller = max(2, round(node.value * share))  # type: ignore[attr-defined]
                statement = statement.edit(node, str(smaller))  # type: ignore[arg-type]
                break
        else:
            return statement
