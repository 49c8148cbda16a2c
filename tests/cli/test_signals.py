"""Ctrl-C, terminations and kill -9 of a whole command, on the fake harness: exit statuses, drained ends, no orphans."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.kill_resume import journal_records, orphans, run
from fuzzer.exits import Exit
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.stats import read_status
from harness.supervise import descendants


def _start(path: Path, *more: str, target: str = "fake:") -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "fuzzer", "fuzz", str(path), "--workers", "2", "--target", target, *more]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _wait_for(what: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 30.0
    while not what():
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)


def _end(process: subprocess.Popen[str]) -> str:
    _out, error = process.communicate(timeout=10.0)
    assert "Traceback" not in error and "never retrieved" not in error
    return error


@pytest.mark.parametrize(("number", "status", "reason"), [
    (signal.SIGINT, Exit.INTERRUPTED, "interrupt"),
    (signal.SIGTERM, Exit.DONE, "terminate"),
])  # fmt: skip
def test_the_first_signal_drains(tmp_path: Path, number: int, status: int, reason: str) -> None:
    path = tmp_path / "c"
    process = _start(path)
    _wait_for(lambda: len(journal_records(path)) > 20, process)
    process.send_signal(number)
    error = _end(process)
    assert process.returncode == status and f"Stopped: {reason}" in error
    assert not orphans(str(path))
    assert read_status(CampaignDirectory.open(path))["stop_reason"] == reason


def test_the_second_signal_kills(tmp_path: Path) -> None:
    path = tmp_path / "c"
    process = _start(path)
    _wait_for(lambda: len(journal_records(path)) > 20, process)
    for pid in orphans(str(path), {process.pid}):  # nothing answers any more: a drain would take its full time
        os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    error = _end(process)
    assert process.returncode == Exit.ABORTED and "(killed)" in error
    assert not orphans(str(path))


def _is_sleeping(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep")
    except OSError:
        return False


@pytest.mark.parametrize("version", ["exec sleep 600", "echo 2.13.0", "echo 2.0.0"])
def test_an_interrupt_while_the_target_starts(tmp_path: Path, version: str) -> None:
    """While it is asked for its version, while the workers start, and while operators would be derived."""
    path = tmp_path / "c"
    slow = tmp_path / "python"
    slow.write_text(f'#!/bin/sh\ncase "$3" in *metadata*) {version};; *) exec sleep 600;; esac\n')
    slow.chmod(0o755)
    process = _start(path, target=str(slow))
    _wait_for(lambda: any(_is_sleeping(pid) for pid in descendants(process.pid)), process)
    started = descendants(process.pid)
    process.send_signal(signal.SIGINT)
    _end(process)
    assert process.returncode == Exit.INTERRUPTED
    assert not orphans(str(path)) and not any(os.path.exists(f"/proc/{pid}") for pid in started)


def test_six_kills_lose_nothing_and_leave_nothing(tmp_path: Path) -> None:
    rows = run(tmp_path / "c", kills=6, fake=True, seconds=0.8, seed=5)
    assert [row.lost_records + row.orphans for row in rows] == [0] * 6
    counts = [row.records for row in rows]
    assert counts == sorted(counts) and counts[-1] > 50
    assert [row.runs for row in rows] == sorted(row.runs for row in rows)
