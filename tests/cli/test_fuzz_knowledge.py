"""`eddy fuzz --without` and `--changed`: checked at once, written down, the same after a resume."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.knowledge.changes import Changes, Part
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal


@pytest.fixture
def eddy(capsys: pytest.CaptureFixture[str]) -> Any:
    def run(*arguments: object) -> tuple[int, str]:
        status = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    return run


def fuzz(folder: Path, *more: object) -> tuple[object, ...]:
    return ("fuzz", folder, "--target", "fake:", "--workers", 1, "--no-clock", "--seed", 3, *more)


def test_sources_stay_off_after_a_resume(eddy: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    assert eddy(*fuzz(path, "--without", "patterns,subgraphs", "--max-execs", 40))[0] == Exit.DONE
    directory = CampaignDirectory.open(path)
    assert directory.config["without"] == ["patterns", "subgraphs"]
    assert eddy("fuzz", path, "--resume", "--max-execs", 30)[0] == Exit.DONE
    outcomes = [record["outcome"] for _, record in read_journal(directory.journal) if "outcome" in record]
    used = {outcome["plan"]["operator"] for outcome in outcomes}
    assert len(used) > 5 and not used & {"apply_pattern", "insert_subgraph"}
    assert not any(outcome["entries"] for outcome in outcomes)
    status, shown = eddy("fuzz", path, "--resume", "--without", "patterns")
    assert status == Exit.USAGE and "--without differs" in shown
    assert eddy("fuzz", path, "--resume", "--without", "subgraphs,patterns", "--max-execs", 1)[0] == Exit.DONE


def test_what_went_into_a_program_is_credited(eddy: Any, tmp_path: Path) -> None:
    path = tmp_path / "c"
    assert eddy(*fuzz(path, "--max-execs", 80))[0] == Exit.DONE
    records = [record for _, record in read_journal(CampaignDirectory.open(path).journal) if record["t"] == "run"]
    credited = [record["outcome"] for record in records if record["outcome"]["entries"]]
    assert "mutate" in {outcome["plan"]["engine"] for outcome in credited}


def test_what_changed_is_preferred(eddy: Any, tmp_path: Path) -> None:
    changes = tmp_path / "changes.json"
    Changes("2.0", "2.1", lowerings=Part(changed=("aten.cumsum",))).write(changes)
    assert eddy(*fuzz(tmp_path / "c", "--changed", changes, "--max-execs", 5))[0] == Exit.DONE
    raised = CampaignDirectory.open(tmp_path / "c").config["raised"]
    assert raised["cumsum"] == 3.0 and 1.0 < raised["scan"] < 3.0
    assert eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 5)[0] == Exit.DONE


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--without", "pattern", "'pattern' is no source of knowledge; name of patterns, subgraphs"),
        ("--changed", "none.json", "eddy knowledge diff"),
    ],
)
def test_bad_choices_are_refused_before_anything_is_made(
    eddy: Any, tmp_path: Path, option: str, value: str, words: str
) -> None:
    status, shown = eddy(*fuzz(tmp_path / "c", option, value))
    assert status == Exit.USAGE and words in shown and len(shown.strip().splitlines()) == 1
    assert not (tmp_path / "c").exists()


def test_a_sample_for_a_person_and_the_agreement(eddy: Any, tmp_path: Path) -> None:
    dump, index, sheet = tmp_path / "dump.jsonl", tmp_path / "index", tmp_path / "sheet.toml"
    dump.write_text(json.dumps({"number": 5, "title": "argmax wrong on transposed view", "body": "silent"}) + "\n")
    assert eddy("knowledge", "import-issues", dump, "--out", index)[0] == 0
    assert eddy("knowledge", "sample", "--index", index, "--count", 3, "--out", sheet)[0] == 0
    sheet.write_text(
        sheet.read_text().replace('task = ""', 'task = "memory_layout"').replace('e = ""', 'e = "boundary"')
    )
    status, shown = eddy("knowledge", "verify", "--index", index, "--from", sheet)
    assert status == 0 and shown.startswith("1 verified")
    status, shown = eddy("knowledge", "agreement", "--index", index, "--json")
    told = json.loads(shown)
    assert status == 0 and told["sampled"] == told["all"] and told["all"]["task"]["agree"] == 1.0
    assert told["all"]["cause"]["confused"] == [["semantics_misaligned", "boundary", 1]]
    assert "kappa" in eddy("knowledge", "agreement", "--index", index)[1]
    assert eddy("knowledge", "sample", "--index", index, "--out", sheet)[0] == Exit.USAGE, "nothing is left"
    for bad in (("5",), ("5", "--from", sheet), ()):
        assert eddy("knowledge", "verify", *bad, "--index", index)[0] == Exit.USAGE
