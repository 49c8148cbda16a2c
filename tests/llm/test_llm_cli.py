"""The options of ``eddy fuzz`` about the language model, and ``eddy llm``."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_base import records
from loopback import KEY, Loopback, loopback

from fuzzer.cli import llm_verb, main
from fuzzer.store.directory import CampaignDirectory

pytest.importorskip("openai")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    monkeypatch.setenv("EDDY_LLM_KEY", KEY)
    with loopback() as made:
        yield made


def fuzz(path: Path, *options: str) -> int:
    plain = ["--target", "fake:", "--workers", "1", "--seed", "3", "--no-clock", "--json"]
    return main(["fuzz", str(path), *plain, *options])


def test_a_campaign_from_the_command_line(server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--engine", "llm", "--llm-endpoint", server.url, "--llm-model", "toy", "--llm-budget", "2M"]
    assert fuzz(tmp_path / "a", *asked, "--max-execs", "8") == 0
    status = json.loads(capsys.readouterr().out)
    assert status["llm_requests"] == len(server.requests) > 3 and status["llm_programs"] > 3
    config = CampaignDirectory.open(tmp_path / "a").config
    assert config["engine"] == "llm" and config["llm"]["endpoint"] == server.url
    assert config["llm"]["budget"] == {"tokens": 2_000_000.0}
    before = len(server.requests)
    assert main(["fuzz", str(tmp_path / "a"), "--resume", "--json", "--max-execs", "4"]) == 0  # as it was
    assert len(server.requests) > before
    assert KEY not in "".join(path.read_text("utf-8", "replace") for path in tmp_path.rglob("*") if path.is_file())

    capsys.readouterr()
    replay = ["--engine", "llm", "--llm-replay", str(tmp_path / "a"), "--max-execs", "8"]
    server.close()
    assert fuzz(tmp_path / "b", *replay) == 0
    assert json.loads(capsys.readouterr().out)["llm_requests"] == 0

    def ran(path: Path) -> list[str]:
        return [row["program"] for row in records(path) if row["t"] == "run"]

    assert ran(tmp_path / "a")[:8] == ran(tmp_path / "b")


def test_a_dry_run_sends_nothing_and_says_what_it_would(server: Loopback, tmp_path: Path) -> None:
    asked = ["--engine", "llm", "--llm-endpoint", server.url, "--llm-model", "toy", "--llm-dry-run"]
    assert fuzz(tmp_path / "a", *asked, "--max-execs", "4") == 0
    assert server.requests == []
    lines = [json.loads(line) for line in (tmp_path / "a" / "llm" / "would-send.jsonl").read_text().splitlines()]
    assert all(line["endpoint"] == server.url and len(line["body"]["messages"]) == 2 for line in lines)
    assert any("test program" in line["body"]["messages"][1]["content"] for line in lines)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--engine", "llm"], "--llm-endpoint"),
        (["--engine", "mixed", "--llm-endpoint", "http://h/v1", "--llm-model", "m"], "--llm-budget"),
        (
            ["--engine", "mixed", "--llm-endpoint", "http://h/v1", "--llm-model", "m", "--llm-budget", "$1"],
            "--llm-price",
        ),
        (["--engine", "llm", "--llm-endpoint", "h", "--llm-model", "m", "--llm-budget", "1k"], "--llm-endpoint"),
        (["--engine", "llm", "--llm-replay", "/nonexistent"], "--llm-replay"),
        (["--llm-model", "m"], "--engine"),
    ],
)
def test_what_cannot_work_is_said_before_anything_is_made(
    options: list[str], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert fuzz(tmp_path / "a", *options, "--max-execs", "1") == 2
    assert words in capsys.readouterr().err
    assert not (tmp_path / "a").exists()


def parsed(*arguments: str) -> Any:
    parser = argparse.ArgumentParser()
    llm_verb.add(parser.add_subparsers())
    return parser.parse_args(["llm", *arguments])


def test_check_and_ledger(server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    args = parsed("check", "--llm-endpoint", server.url, "--llm-model", "toy", "--llm-price", "1,2", "--json")
    assert args.run(args) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["ok"] and result["structured"] == "json_schema" and result["money"] > 0
    server.default = "unauthorised"
    assert args.run(args) == 2
    told = capsys.readouterr()
    assert "401" in json.loads(told.out)["error"] and KEY not in told.out + told.err
    server.default = "ok"
    asked = ["--engine", "llm", "--llm-endpoint", server.url, "--llm-model", "toy", "--llm-budget", "2M"]
    assert fuzz(tmp_path / "a", *asked, "--max-execs", "4") == 0
    capsys.readouterr()
    args = parsed("ledger", str(tmp_path / "a"), "--json")
    assert args.run(args) == 0
    rows = json.loads(capsys.readouterr().out)
    assert rows["total"]["requests"] == sum(row["requests"] for name, row in rows.items() if name != "total") > 0
    assert rows["fresh"]["tokens"] > 0
