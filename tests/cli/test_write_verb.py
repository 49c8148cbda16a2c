"""``eddy write`` on the fake target."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit

ON_FAKE = ("--target", "fake:", "--seed", "4")


def test_programs_are_written_and_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["write", "--count", "3", "--out", str(out), "--json", *ON_FAKE]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["engines"]["template"]["programs"] == len(list(out.glob("*.py"))) == 3
    assert not told["interrupted"] and told["features"]["mode=forward"]["realised"] > 0
    assert main(["write", "--count", "1", "--out", str(out), *ON_FAKE]) == Exit.USAGE
    assert "not an empty folder" in capsys.readouterr().err


def test_the_table_is_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", "--count", "6", "--mutate", *ON_FAKE]) == Exit.DONE
    shown = capsys.readouterr().out
    for word in ("template", "mutate", "conformity", "fewer than 50 times", "dispatched"):
        assert word in shown


def test_seeds_without_mutation_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["write", "--seeds", "x", *ON_FAKE]) == Exit.USAGE
    assert "--mutate" in capsys.readouterr().err
