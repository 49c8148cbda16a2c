"""One order on its way: asked, answered, checked, perhaps mended; and the record of every try."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.llm.jsonl import append_json
from fuzzer.llm.schema import Schema
from fuzzer.llm.steps import StepList
from fuzzer.policy.plan import Order
from fuzzer.program import Program

#: Tries of one order: the first, and two repairs with the real error.
MOST_TRIES = 3


@dataclass
class Job:
    """``program`` or ``steps`` once answered; ``error`` is what the last try failed with, for the repair prompt."""

    order: Order
    operators: tuple[str, ...] = ()  # keys that the prompt offered
    schema: Schema | None = None  # of a step list
    program: Program | None = None
    steps: StepList | None = None
    text: str = ""  # of the last try
    error: str = ""
    tries: int = 0
    tokens: int = 0
    unpaid: int = 0  # of these, not yet in the record of any run
    seconds: float = field(default=0.0)  # of waiting for answers, in the background

    @property
    def exhausted(self) -> bool:
        return self.tries >= MOST_TRIES

    def take_tokens(self) -> int:
        """Tokens since the last call: each is credited to one outcome."""
        taken, self.unpaid = self.unpaid, 0
        return taken


class Tries:
    """``tries.jsonl``: one line a try, and one for what became of the program that ran."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "tries.jsonl"

    def record(self, job: Job, stage: str, verdict: str, why: str = "", **more: Any) -> None:
        """``stage``: answer | static | probe | eager | run."""
        line = {"order": job.order.number, "arm": job.order.arm, "try": job.tries, "stage": stage, "verdict": verdict}
        if why:
            line["why"] = why[:300]
        append_json(self.path, {**line, "tokens": job.tokens, "seconds": round(job.seconds, 3), **more})
