"""``eddy web`` as a process: one line, served, ended by Ctrl-C; bad input in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.store.directory import CampaignDirectory


@pytest.mark.parametrize("number, status", [(signal.SIGINT, Exit.INTERRUPTED), (signal.SIGTERM, Exit.DONE)])
def test_it_serves_until_told(tmp_path: Path, number: int, status: int) -> None:
    directory = CampaignDirectory.create(tmp_path / "camp", {"seed": 1})
    command = [sys.executable, "-m", "fuzzer", "web", str(directory.path), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        assert (
            set(told) == {"url", "port", "token"} and told["url"] == f"http://127.0.0.1:{told['port']}/{told['token']}/"
        )
        with directory.lock(), urllib.request.urlopen(told["url"], timeout=30) as answer:  # a campaign may run
            assert b"<!doctype html>" in answer.read()[:100].lower()
        process.send_signal(number)
        out, error = process.communicate(timeout=20)
    assert (process.returncode, out, error) == (status, "", "")


@pytest.mark.parametrize("words, status, says", [
    (("missing",), Exit.DIRECTORY, "not a campaign (no campaign.toml)"),
    ((".", "--port", "65536"), Exit.USAGE, "'65536' is no port"),
    ((".", "--port", "x"), Exit.USAGE, "'x' is no port"),
])  # fmt: skip
def test_bad_input_is_told_in_a_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    status: Exit,
    says: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    try:
        left = main(["web", *words])
    except SystemExit as error:  # argparse
        left = int(error.code or 0)
    assert left == status and says in capsys.readouterr().err.splitlines()[-1]
