"""The commands that the CI pages tell people to run are commands that there are."""

from __future__ import annotations

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import main

DOCS = Path(__file__).parent.parent / "docs"
#: A command's end in a line of shell, and the comment behind it.
_END = re.compile(r"\s(?:\|\||>|#).*")


def commands() -> list[str]:
    lines = [
        line.strip() for name in ("examples/nightly.yml", "ci.md") for line in (DOCS / name).read_text().splitlines()
    ]
    shell = [line for line in lines if line.startswith("eddy ")]
    quoted = re.findall(r"`(eddy [^`]+)`", (DOCS / "ci.md").read_text())
    return [_END.sub("", line) for line in shell] + [line for line in quoted if "DIR" in line]


def test_the_workflow_runs_a_whole_night() -> None:
    verbs = [" ".join(command.split()[1:3]) for command in commands()]
    order = ["check --target", "triage recheck", "fuzz $CAMPAIGN", "triage $CAMPAIGN", "report $CAMPAIGN"]
    assert [verb.replace('"', "") for verb in verbs][: len(order)] == order
    assert any("--exit-on-finding" in command for command in commands())


@pytest.mark.parametrize("command", commands())
def test_commands_parse(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    parse = argparse.ArgumentParser.parse_args

    def only_parse(self: argparse.ArgumentParser, *args: Any) -> argparse.Namespace:
        found: argparse.Namespace = parse(self, *args)
        found.run = lambda _args: 0
        return found

    monkeypatch.setattr(argparse.ArgumentParser, "parse_args", only_parse)
    words = shlex.split(command.replace("$MAX_TIME", "4h"))
    assert main(words[1:]) == 0
