"""``eddy knowledge`` and ``eddy features`` on the command line, without a torch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit


@pytest.fixture
def eddy(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command; returns (exit status, what it printed)."""

    def run(*arguments: object) -> tuple[int, str]:
        status = main([str(argument) for argument in arguments])
        shown = capsys.readouterr()
        return status, shown.out + shown.err

    return run


def test_counts_and_families(eddy: Any) -> None:
    status, shown = eddy("knowledge", "stats", "--json")
    stats = json.loads(shown)
    assert status == 0 and stats["patterns"] >= 150 and stats["subgraphs"] >= 60 and not stats["near_duplicates"]
    assert sum(stats["pattern_families"].values()) == stats["patterns"]


@pytest.mark.parametrize(
    ("name", "kind"),
    [("beta-zero", "pattern"), ("conv-bn-relu", "subgraph"), ("layout=offset", "feature"), ("addmm", "operator")],
)
def test_show_finds_every_kind(eddy: Any, name: str, kind: str) -> None:
    status, shown = eddy("knowledge", "show", name, "--json")
    assert status == 0 and json.loads(shown)[kind] == name


def test_show_of_nothing_known_says_what_to_do(eddy: Any) -> None:
    status, shown = eddy("knowledge", "show", "nothing-like-it")
    assert status == Exit.USAGE and "eddy knowledge search" in shown


def test_lint_is_clean_and_search_prints_lines(eddy: Any) -> None:
    assert eddy("knowledge", "lint", "--json")[0] == 0
    status, shown = eddy("knowledge", "search", "softmax", "attention", "--limit", 3, "--json")
    assert status == 0 and len([json.loads(line) for line in shown.splitlines()]) == 3


def test_issues_from_dump_to_likeness(eddy: Any, tmp_path: Path) -> None:
    dump, index = tmp_path / "dump.jsonl", tmp_path / "index"
    dump.write_text(json.dumps({"number": 5, "title": "argmax wrong on transposed view", "body": "silent"}) + "\n{\n")
    status, shown = eddy("knowledge", "import-issues", dump, "--out", index, "--json")
    assert status == 0 and json.loads(shown)["imported"] == 1 and len(json.loads(shown)["faults"]) == 1
    status, shown = eddy("knowledge", "similar", "transposed argmax", "--index", index, "--json")
    assert status == 0 and json.loads(shown)["number"] == 5
    status, shown = eddy("knowledge", "verify", 5, "--index", index, "--task", "memory_layout", "--cause", "boundary")
    assert status == 0 and shown.startswith("1 verified")


def test_features_of_a_text(eddy: Any, tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    file.write_text(
        'import torch\n\nMETA = {"mode": "backward"}\n\n\ndef build_inputs():\n'
        "    return (torch.randn(3, 4, requires_grad=True),)\n\n\ndef fn(x):\n    return x.half().amax(dim=-1)\n"
    )
    status, shown = eddy("features", file, "--json")
    found = json.loads(shown)
    assert (
        status == 0 and {"mode=backward", "boundary=negative_dim"} <= set(found["static"]) and "realised" not in found
    )
    assert "amax-gradient-after-cast" in found["patterns"]
    assert "mode=backward" in eddy("features", file)[1]
