"""Bad input and bad surroundings: one clear line, the right exit status, nothing lost, never a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.store.directory import CampaignDirectory

GOOD = """import torch

META = {"fake": {"do": "pass"}}


def build_inputs():
    return (torch.ones(2),)


def fn(a):
    return a
"""


@pytest.fixture
def eddy(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command; returns (exit status, what it printed on standard error)."""

    def run(*arguments: object) -> tuple[int, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as left:  # argparse
            status = int(left.code or 0)
        error = capsys.readouterr().err
        assert "Traceback" not in error
        return status, error

    return run


def _fuzz(folder: Path, *more: object) -> tuple[object, ...]:
    return ("fuzz", folder, "--target", "fake:", "--workers", 1, "--no-clock", "--seed", 3, *more)


def test_a_campaign_and_its_resumption(eddy: Any, tmp_path: Path) -> None:
    assert eddy(*_fuzz(tmp_path / "c", "--max-execs", 10))[0] == Exit.DONE
    status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 5)
    assert status == Exit.DONE and "resume: 10 programs" in error
    status, error = eddy(*_fuzz(tmp_path / "c"))
    assert status == Exit.DIRECTORY and "already holds a campaign; continue it with --resume" in error
    assert eddy("fuzz", tmp_path / "c", "--resume-or-new", "--max-execs", 1)[0] == Exit.DONE


@pytest.mark.parametrize(("options", "says"), [
    (("--workers", "0"), "--workers 0: give a number from 1"),
    (("--max-time", "soon"), "'soon' is no duration; write 30s"),
    (("--max-execs", "-1"), "'-1' is no whole number"),
    (("--target", "/nowhere/python"), "not an executable"),
])  # fmt: skip
def test_options(eddy: Any, tmp_path: Path, options: tuple[str, ...], says: str) -> None:
    status, error = eddy("fuzz", tmp_path / "c", *options)
    assert status == (Exit.TARGET if "--target" in options else Exit.USAGE)
    assert says in error.strip().splitlines()[-1]


def test_directories_that_are_refused(eddy: Any, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("precious")
    status, error = eddy(*_fuzz(tmp_path / "full"))
    assert status == Exit.DIRECTORY and "not a campaign (it holds 'thesis.tex')" in error
    assert (tmp_path / "full" / "thesis.tex").read_text() == "precious"
    for verb in (("status",), ("fuzz", "--resume")):
        status, error = eddy(verb[0], tmp_path / "full", *verb[1:])
        assert status == Exit.DIRECTORY and "no campaign.toml" in error and error.count("\n") == 1
    status, error = eddy(*_fuzz(tmp_path / "full" / "thesis.tex"))
    assert status == Exit.DIRECTORY and error.count("\n") == 1
    status, error = eddy(*_fuzz(Path("/proc/eddy")))
    assert status == Exit.DIRECTORY and "cannot be written" in error


def test_a_newer_format_and_a_damaged_configuration(eddy: Any, tmp_path: Path) -> None:
    directory = CampaignDirectory.create(tmp_path / "c", {"seed": 1})
    for text, says in (
        ("format = 99\n", "written by a newer Eddy"),
        ("format = 1\nseed = \n", "not valid TOML"),
        ('format = 1\nseed = 1\nworkers = "many"\ntargets = ["fake:"]\n', "mend that line"),
        ("format = 1\n", "'targets' is missing"),
    ):
        directory.config_file.write_text(text)
        status, error = eddy("fuzz", directory.path, "--resume", "--max-execs", 1)
        assert status == Exit.DIRECTORY and says in error and error.count("\n") == 1


def test_a_locked_directory(eddy: Any, tmp_path: Path) -> None:
    directory = CampaignDirectory.create(tmp_path / "c", {"seed": 1, "workers": 1, "targets": ["fake:"]})
    with directory.lock():
        directory.request_stop("not for the other")
        status, error = eddy("fuzz", directory.path, "--resume")
    assert status == Exit.DIRECTORY and f"in use by process {os.getpid()}" in error
    assert directory.stop_requested() == "not for the other"


def test_a_stale_stop_file_is_told_and_removed(eddy: Any, tmp_path: Path) -> None:
    eddy(*_fuzz(tmp_path / "c", "--max-execs", 3))
    (tmp_path / "c" / "STOP").touch()
    status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 3)
    assert status == Exit.DONE and "removed a STOP file" in error and not (tmp_path / "c" / "STOP").exists()


def test_journals_that_were_damaged(eddy: Any, tmp_path: Path) -> None:
    eddy(*_fuzz(tmp_path / "c", "--max-execs", 12))
    journal = tmp_path / "c" / "journal.msgpack"
    sound = journal.read_bytes()
    journal.write_bytes(sound[:-3])
    status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 1)
    assert status == Exit.DONE and "dropped a torn record" in error and "ahead of the journal" in error
    journal.write_bytes(sound[: len(sound) // 2] + b"\0" * 8 + sound[len(sound) // 2 + 8 :])
    (tmp_path / "c" / "snapshot.msgpack").write_bytes(b"nonsense")
    status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 1)
    assert status == Exit.DONE and "damaged at offset" in error and "whole journal is replayed" in error
    assert list((tmp_path / "c").glob("*.damaged-1"))


def test_programs_that_are_none(eddy: Any, tmp_path: Path) -> None:
    cases = {
        "nofn": (GOOD.replace("def fn", "def gn"), "no function `fn`"),
        "syntax": (GOOD + "def (", "not valid Python"),
        "import": ("import socket\n" + GOOD, "import of 'socket' is not allowed"),
        "late": (GOOD.replace("return a\n", "import subprocess\n    return a\n"), "import of 'subprocess'"),
        "meta": (GOOD.replace('"pass"', "open"), "META holds more than plain literals"),
    }
    for name, (text, says) in cases.items():
        (tmp_path / f"{name}.py").write_text(text)
        status, error = eddy("exec", tmp_path / f"{name}.py", "--target", "fake:")
        assert status == Exit.USAGE and says in error and f"{name}.py" in error and error.count("\n") == 1
    (tmp_path / "latin.py").write_bytes(b"# \xe9\n")
    assert "not UTF-8" in eddy("exec", tmp_path / "latin.py")[1]
    assert "cannot be read" in eddy("exec", tmp_path / "absent.py")[1]


def test_json_says_the_error_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["exec", str(tmp_path / "absent.py"), "--json"]) == Exit.USAGE
    line = json.loads(capsys.readouterr().out)
    assert line["ok"] is False and line["exit"] == Exit.USAGE and "cannot be read" in line["error"]


def test_no_compiler(eddy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    for verb in (("fuzz", tmp_path / "c"), ("check",), ("exec", "x.py"), ("repro", "x.py")):
        status, error = eddy(*verb)
        assert status == Exit.TARGET and "no C++ compiler found" in error
    assert not (tmp_path / "c").exists()


def test_status_of_a_dead_campaign_and_repro_of_nothing(eddy: Any, tmp_path: Path) -> None:
    eddy(*_fuzz(tmp_path / "c", "--max-execs", 3))
    stats = tmp_path / "c" / "fuzzer_stats"
    stats.write_text(stats.read_text().replace("max-execs", ""))
    assert eddy("status", tmp_path / "c")[0] == Exit.DONE
    status, error = eddy("repro", tmp_path)
    assert status == Exit.USAGE and "no finding.json" in error
    (tmp_path / "finding.json").write_text("{}")
    assert "not a finding" in eddy("repro", tmp_path)[1]


def test_an_internal_error_is_one_line_and_a_file(eddy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(self: Any) -> None:
        raise KeyError("unforeseen")

    monkeypatch.setattr("fuzzer.campaign.Campaign._write_stats", broken)
    status, error = eddy(*_fuzz(tmp_path / "c", "--max-execs", 3))
    last = error.strip().splitlines()[-1]
    assert status == Exit.INTERNAL and "internal error: KeyError: 'unforeseen'; please report it" in last
    (trace,) = (tmp_path / "c").glob("eddy-error-*.txt")
    assert str(trace) in last and "Traceback" in trace.read_text()


def test_a_full_disk_ends_a_campaign_without_loss(eddy: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from fuzzer.store.journal import Journal

    eddy(*_fuzz(tmp_path / "c", "--max-execs", 5))
    plain = Journal.append

    def full(self: Journal, record: Any) -> int:
        if record["t"] == "run":
            raise OSError(28, "No space left on device")
        return plain(self, record)

    with monkeypatch.context() as patched:
        patched.setattr(Journal, "append", full)
        status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 5)
    assert status == Exit.ABORTED and "the disk is full" in error
    status, error = eddy("fuzz", tmp_path / "c", "--resume", "--max-execs", 5)
    assert status == Exit.DONE and "resume: 5 programs" in error


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    command = f"{sys.executable} -m fuzzer knowledge show | head -c 1"
    done = subprocess.run(
        ["bash", "-c", f"set -o pipefail; {command}"], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "{" and done.returncode == 0
    assert "internal error" not in done.stderr and "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr
