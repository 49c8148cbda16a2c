"""A bug report made into a program, or an honest account of why not."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import Loopback, loopback

from fuzzer.cli import from_issue
from fuzzer.exits import UserError
from fuzzer.llm.from_issue import CLASSIFICATION, SYMPTOMS

pytest.importorskip("openai")
REPORT = "torch.compile gives other numbers than eager for torch.cumsum(x, -1) with x = torch.randn(3, 4).\n"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    """The toy sorts every report as a wrong result."""
    monkeypatch.setitem(CLASSIFICATION["properties"], "symptom", {"type": "string", "enum": ["wrong result"]})
    with loopback() as made:
        yield made


def run(server: Loopback, path: Path, *options: str) -> int:
    parser = argparse.ArgumentParser()
    from_issue.add(parser.add_subparsers())
    asked = ["--llm-endpoint", server.url, "--llm-model", "toy", "--target", "fake:", "--json"]
    args = parser.parse_args(["from-issue", str(path), *asked, *options])
    return int(args.run(args))


def test_not_reproduced_is_said_after_so_many_tries(
    server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "issue.md").write_text(REPORT)
    assert run(server, tmp_path / "issue.md", "--tries", "3", "--out", str(tmp_path / "p.py")) in (0, 5)
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert result["symptom"] == "wrong result" and 1 <= len(result["attempts"]) <= 3
    if not result["reproduced"]:
        assert len(result["attempts"]) == 3 and all(attempt["why"] for attempt in result["attempts"])
    prompts = [body["messages"][1]["content"] for body in server.requests]
    first = next(text for text in prompts if "Write the smallest program" in text)
    assert REPORT.strip() in first and "cumsum: torch.cumsum(" in first
    assert (tmp_path / "p.py").read_text().startswith("import torch")


def test_the_symptom_must_be_the_reported_one(
    server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "issue.md").write_text(REPORT)
    monkeypatch.setattr("fuzzer.llm.free._META", frozenset({"mode", "fake"}))  # the toy's programs ask for wrong values
    assert run(server, tmp_path / "issue.md") == 0
    assert json.loads(capsys.readouterr().out)["verdict"].startswith("wrong_value")
    monkeypatch.setitem(SYMPTOMS, "wrong result", frozenset())
    assert run(server, tmp_path / "issue.md", "--tries", "2") == 5
    result = json.loads(capsys.readouterr().out)
    assert [attempt["stage"] for attempt in result["attempts"]] == ["symptom", "symptom"]
    assert "wrong_value" in result["attempts"][0]["why"] and result["program"]


def test_nothing_to_read_and_nobody_to_ask(server: Loopback, tmp_path: Path) -> None:
    (tmp_path / "issue.md").write_text(" \n")
    with pytest.raises(UserError, match="is empty"):
        run(server, tmp_path / "issue.md")
    (tmp_path / "issue.md").write_text(REPORT)
    server.default = "unauthorised"
    with pytest.raises(UserError, match="cannot be asked"):
        run(server, tmp_path / "issue.md")
    server.default = "ignores_schema"
    with pytest.raises(UserError, match="stronger"):
        run(server, tmp_path / "issue.md")
