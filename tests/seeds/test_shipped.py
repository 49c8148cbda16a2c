"""The seeds that ship: in contract, small, distinct, with the features that they declare; and their index."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from fuzzer.exits import UserError
from fuzzer.features.detect import detect
from fuzzer.knowledge.retrieval import called
from fuzzer.program import Program
from fuzzer.seeds.given import read_programs
from fuzzer.seeds.listing import list_seeds
from fuzzer.seeds.shipped import INDEX, NAME, SHIPPED, read_index

FILES = sorted(SHIPPED.rglob("*.py"))
PROGRAMS = {str(path.relative_to(SHIPPED)): Program.parse(path.read_text("utf-8"), str(path)) for path in FILES}


def test_there_are_at_least_two_hundred_and_no_two_alike() -> None:
    assert len(PROGRAMS) >= 200
    ideas = {
        (frozenset(called(program)), detect(program, None, lambda operator: ""), program.text.partition("\n\n\n")[2])
        for program in PROGRAMS.values()
    }
    assert len(ideas) == len(PROGRAMS)
    assert len({frozenset(called(program)) for program in PROGRAMS.values()}) > 150


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_seed_reads_as_written_by_hand_and_has_what_it_declares(name: str) -> None:
    program = PROGRAMS[name]
    lines = program.text.splitlines()
    assert len(lines) <= 25 and max(map(len, lines)) <= 120
    assert program.meta["title"] and program.meta["features"]
    missing = set(program.meta["features"]) - detect(program, None, lambda operator: "")
    assert not missing, missing
    functions = {node.name: node for node in ast.parse(program.text).body if isinstance(node, ast.FunctionDef)}
    taken = {argument.arg for argument in functions["fn"].args.args}
    read = {node.id for node in ast.walk(functions["fn"]) if isinstance(node, ast.Name)}
    assert taken <= read, "an input that nothing reads"


def test_the_index_tells_what_each_covers_and_all_pass() -> None:
    index = read_index(SHIPPED)
    assert set(index) == {program.id for program in PROGRAMS.values()}, "run: python -m fuzzer.seeds.shipped"
    assert {covered.kind for covered in index.values()} == {"pass"}
    assert all(covered.features for covered in index.values())
    # A loop operator is not seen into.
    assert sum(bool(covered.operators) for covered in index.values()) >= 0.95 * len(index)
    rows = list_seeds(SHIPPED).rows
    assert len(rows) == len(PROGRAMS) and all(row.covered for row in rows)
    assert sum(len(row.features) for row in rows) > 10 * len(rows), "realised features, not those of the text alone"


def test_campaigns_name_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    programs, skipped = read_programs(Path(NAME))
    assert len(programs) == len(PROGRAMS) and not skipped


def test_a_damaged_index_is_told(tmp_path: Path) -> None:
    assert read_index(tmp_path) == {}
    (tmp_path / INDEX).write_text('{"seeds": {"a.py": {}}}')
    with pytest.raises(UserError, match="not an index of seeds"):
        read_index(tmp_path)
