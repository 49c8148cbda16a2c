"""The linter, and that all that ships passes it, examples included."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

import pytest

from fuzzer.features.detect import default_space
from fuzzer.knowledge import lint, trigger
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Pattern, default_entries
from fuzzer.observation import End, Observation, Stage
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

OPERATORS = Operators.load_extract()
ONE = next(e for e in default_entries() if isinstance(e, Pattern) and e.id == "arg-of-transposed-pointwise")


def test_everything_that_ships_passes() -> None:
    faults = lint.check(default_entries(), default_space(), OPERATORS.families, lint.operator_names(OPERATORS))
    assert not faults, "\n".join(map(str, faults))


@pytest.mark.parametrize("entry", default_entries(), ids=lambda entry: entry.id)
def test_every_example_is_a_program(entry: lint.Entry) -> None:
    for seed in (0, 1):
        program = lint.example(entry, seed)
        assert Program.parse(program.text) == dataclasses.replace(program, source="<program>")
        assert "_1_" not in program.text and "DTYPE" not in program.text and "SHAPE" not in program.text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("layout=wavy", "no feature 'layout=wavy'"),
        ("family=gardening", "no family 'gardening'"),
        ("op=argmaxx", "no operator 'argmaxx'"),
    ],
)
def test_unknown_atoms_are_named(text: str, message: str) -> None:
    entry = dataclasses.replace(ONE, trigger=trigger.parse(text, "x"))
    (fault,) = lint.check([entry], default_space(), OPERATORS.families, lint.operator_names(OPERATORS))
    assert message in str(fault) and str(fault).startswith(ONE.id)


def test_a_reworded_copy_is_found() -> None:
    copy = dataclasses.replace(ONE, id="copy", action=ONE.action.replace("the", "its"))
    other = dataclasses.replace(
        ONE, id="other", trigger=trigger.parse("op=cat", "x"), title="something else", action="Quite another thing."
    )
    assert [(left.id, right.id) for left, right in lint.near_duplicates([ONE, copy, other])] == [(ONE.id, "copy")]


def test_an_example_is_judged_by_what_eager_does() -> None:
    """Here nothing ran (no operators), so the example has neither its trigger nor a fault."""
    program = lint.example(ONE)
    seen = Observation(id=program.id, variant="", stages=(Stage("eager", 0.1, 0.1, None),), end=End(how="done"))
    judge = lambda entry: lint.judge_example(entry, program, seen, OPERATORS.family_of_aten, OPERATORS.families)  # noqa: E731
    assert "lacks its own trigger" in str(judge(ONE)[0])
    assert "although refused = true" in str(judge(dataclasses.replace(ONE, refused=True))[0])
    killed = dataclasses.replace(seen, end=End(how="signal", why="SIGSEGV"))
    (fault,) = lint.judge_example(ONE, program, killed, OPERATORS.family_of_aten, OPERATORS.families)
    assert "does not run (signal SIGSEGV)" in str(fault)


@pytest.mark.torch
def test_every_example_runs_and_has_its_trigger(tmp_path: Path) -> None:
    pytest.importorskip("torch")

    async def faults() -> list[lint.Fault]:
        worker = Worker(Target(), tmp_path / "worker", WorkerOptions(coverage=(), warm=False))
        await worker.start()
        try:
            return await lint.run_examples(default_entries(), worker, OPERATORS)
        finally:
            await worker.stop()

    found = asyncio.run(faults())
    assert not found, "\n".join(map(str, found))
