"""The account of what was written, and the loop of it on the fake target."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from fuzzer.engines.mutate import MUTATIONS
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import default_entries
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.worker import Target
from fuzzer.writing import Ran, Tally, Writing, outcome

TEXT = """import torch

META = {meta}


def build_inputs():
    return (torch.ones(2),)


def fn(a):
    return a + 1
"""


def program(**meta: object) -> Program:
    return Program.parse(TEXT.format(meta=repr(meta)))


def seen(fault: str = "", how: str = "done") -> Observation:
    problem = {"type": "RuntimeError", "message": fault} if fault else None
    stages = [{"name": "build"}, {"name": "eager", "fault": problem}]
    return Observation.from_map({"stages": stages, "end": {"how": how, "stage": "eager"}})


def ran(ended: str = "valid", writer: str = "template", asked: tuple[str, ...] = ("a=1", "a=2"), **more: object) -> Ran:
    realised = frozenset({"a=1", "b=1"})
    return Ran(program(), writer, asked, realised, ended, "", 0.01, ("aten.add",), ("add",), **more)  # type: ignore[arg-type]


def test_what_eager_refuses_is_invalid_unless_it_was_meant() -> None:
    refused = next(entry.id for entry in default_entries() if entry.refused)
    assert outcome(program(), seen()) == ("valid", "")
    assert outcome(program(), seen("size 3 must match 4")) == (
        "invalid",
        "eager refuses it: RuntimeError: size N must match N",
    )
    assert outcome(program(refused=True), seen("index"))[0] == "refused"
    assert outcome(program(knowledge=[refused]), seen("index"))[0] == "refused"
    assert outcome(program(refused=True), seen(how="signal"))[0] == "died"


def test_conformity_is_of_template_programs_that_ran() -> None:
    tally = Tally()
    tally.add(ran())
    tally.add(ran("refused"))
    tally.add(ran("valid", "mutate:splice"))
    tally.unwritten["template"] += 1
    told = tally.summary(["a=1", "a=2", "c=1"], rare=2)
    assert told["conformity"] == 0.5
    assert told["features"]["a=1"] == {"asked": 1, "conformity": 1.0, "realised": 3}
    assert told["features_under_60_percent"] == ["a=2"] and told["features_rare"] == ["a=2", "c=1"]
    assert told["engines"]["template"]["valid_or_refused"] == 1.0 and told["engines"]["template"]["unwritten"] == 1
    assert told["mutations"]["splice"]["programs"] == 1
    assert (told["operators_executed"], told["operators_of_catalogue"]) == (1, 1)


def test_a_program_that_never_ran_realises_nothing() -> None:
    tally = Tally()
    tally.add(ran("invalid"))
    told = tally.summary(["b=1"])
    assert told["features"]["b=1"]["realised"] == 0 and told["operators_executed"] == 0
    assert told["conformity"] == 0.5, "but it was asked"


def write(folder: Path, count: int, seeds: tuple[Program, ...] = (), workers: int = 1) -> tuple[Writing, list[str]]:
    writing = Writing(Operators.load_extract(), 3, seeds, folder / "out")
    target = Target(fake=True)
    asyncio.run(writing.run(count, target, folder / "work", workers, lambda tally, done: None))
    return writing, [path.read_text() for path in sorted((folder / "out").iterdir())]


def test_the_same_seed_writes_the_same_programs(tmp_path: Path) -> None:
    one, texts = write(tmp_path / "a", 4)
    _, again = write(tmp_path / "b", 4)
    assert texts == again and len(texts) == 4
    assert one.tally.shares(["template"])["programs"] == 4


def test_four_of_five_are_mutants_and_every_mutation_has_its_turn(tmp_path: Path) -> None:
    writing, _ = write(tmp_path, 5 * (len(MUTATIONS) // 4 + 1), (program(),), workers=2)
    told = writing.tally.summary([])
    assert set(told["mutations"]) == set(MUTATIONS)
    tried = {name: row["programs"] + row["unwritten"] for name, row in told["mutations"].items()}
    assert max(tried.values()) - min(tried.values()) <= 1
    template = told["engines"]["template"]
    assert template["programs"] + template["unwritten"] == len(MUTATIONS) // 4 + 1


def test_it_stops_when_asked(tmp_path: Path) -> None:
    writing = Writing(Operators.load_extract(), 3)

    def stop(tally: Tally, done: int) -> None:
        writing.stopping = done >= 2

    asyncio.run(writing.run(50, Target(fake=True), tmp_path, 1, stop))
    assert writing.written == 2


@pytest.mark.torch
def test_on_the_real_torch_most_are_valid(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    writing = Writing(Operators.load_extract(), 5)
    tally = asyncio.run(writing.run(40, Target(), tmp_path, 1, lambda tally, done: None))
    told = tally.summary([])
    assert told["engines"]["template"]["valid_or_refused"] >= 0.9
    assert told["conformity"] >= 0.85 and told["operators_of_catalogue"] > 60
