"""One child under limits, alone: how it ends, what is kept of it, and that nothing of it stays."""

from __future__ import annotations

import faulthandler
import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.sandbox import adopt_orphans
from harness.supervise import Limits, Supervised, _granted, descendants, resident, waited

SMALL = Limits(stage_seconds=5.0, eager_seconds=0.4, total_seconds=5.0)


@pytest.fixture(autouse=True, scope="module")
def _reaper() -> None:
    adopt_orphans()


def _run(folder: Path, body: Any, limits: Limits = SMALL, keep: tuple[int, ...] = ()) -> Supervised:
    run = Supervised(str(folder), limits, keep)
    run.run(body)
    assert [pid for pid in descendants(os.getpid()) if pid not in keep] == []
    return run


def test_a_child_that_ends_well(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        report({"type": "beat", "stage": "eager"})
        os.write(1, b"hello ")
        os.write(2, b"there\n")
        report({"type": "facts", "facts": {"x": 1}})

    run = _run(tmp_path, body)
    assert run.end == {"how": "done", "signal": 0, "status": 0, "stage": "eager", "why": ""}
    assert run.messages == [{"type": "facts", "facts": {"x": 1}}]
    assert run.log() == "hello there\n"
    assert run.rss_peak > 1 << 20 and run.seconds > 0


def test_an_exception_in_the_body_is_ours_and_logged(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        sys.stderr = sys.__stderr__  # the test runner's own stands in the way
        raise ValueError("a fault of the harness")

    run = _run(tmp_path, body)
    assert (run.end["how"], run.end["status"]) == ("exit", 70)
    assert "ValueError: a fault of the harness" in run.log()


@pytest.mark.parametrize("number", [signal.SIGSEGV, signal.SIGABRT, signal.SIGFPE])
def test_a_signal_is_told_with_the_stage_it_struck(tmp_path: Path, number: int) -> None:
    def body(report: Any) -> None:
        faulthandler.disable()  # the test runner's would print a trace of this test
        report({"type": "beat", "stage": "run"})
        os.kill(os.getpid(), number)

    end = _run(tmp_path, body).end
    assert (end["how"], end["signal"], end["stage"]) == ("signal", number, "run")
    assert end["why"] == f"died with {signal.Signals(number).name}"


def test_limits_hold_by_stage(tmp_path: Path) -> None:
    def hang(report: Any) -> None:
        report({"type": "beat", "stage": "eager"})
        time.sleep(3600)

    end = _run(tmp_path, hang).end
    assert (end["how"], end["stage"]) == ("timeout", "eager")
    assert "0.4 s" in end["why"]


def test_the_total_counts_where_no_stage_is_slow(tmp_path: Path) -> None:
    def dawdle(report: Any) -> None:
        for number in range(3600):
            report({"type": "beat", "stage": f"s{number}"})
            time.sleep(0.05)

    end = _run(tmp_path, dawdle, Limits(total_seconds=0.5)).end
    assert end["how"] == "timeout" and "the program" in end["why"]


def test_memory_and_output_and_files_and_processes(tmp_path: Path) -> None:
    def eat(report: Any) -> None:
        hog = bytearray()
        while True:
            hog += b"x" * (8 << 20)

    def shout(report: Any) -> None:
        while True:
            os.write(1, b"x" * 65536)

    def fill(report: Any) -> None:
        with open("/dev/shm/eddy-test-file", "wb") as file:
            os.unlink(file.name)
            while True:
                file.write(b"x" * 65536)

    def fork(report: Any) -> None:
        while True:
            if os.fork() == 0:
                time.sleep(3600)

    def grandchild_eats(report: Any) -> None:
        if os.fork() == 0:
            eat(report)
        time.sleep(3600)

    small = {"memory": resident(os.getpid()) + (200 << 20), "output": 1 << 20, "processes": 8}
    ends = [_run(tmp_path, body, Limits(**small)).end["how"] for body in (eat, shout, fork, grandchild_eats)]
    assert ends == ["memory", "output", "processes", "memory"]
    assert _run(tmp_path, fill, Limits(file_size=1 << 20)).end["how"] == "files"


def test_orphans_are_killed_and_others_children_spared(tmp_path: Path) -> None:
    other = os.fork()
    if other == 0:
        time.sleep(3600)
        os._exit(0)
    pids = tmp_path / "pids"

    def body(report: Any) -> None:
        for _ in range(3):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:  # an orphan's orphan, in a session of its own
                    os.setsid()
                with open(pids, "a") as file:
                    file.write(f"{os.getpid()}\n")
                time.sleep(3600)
        while not pids.exists() or len(pids.read_text().split()) < 6:
            time.sleep(0.005)

    try:
        run = _run(tmp_path, body, keep=(other,))
        assert run.end["how"] == "done"
        assert not any(os.path.exists(f"/proc/{pid}") for pid in pids.read_text().split())
        assert os.waitpid(other, os.WNOHANG) == (0, 0)
    finally:
        os.kill(other, signal.SIGKILL)
        os.waitpid(other, 0)


def test_bytes_that_are_no_message_end_the_child(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        report({"type": "facts", "facts": {"x": 1}})
        (pipe,) = [cell.cell_contents for cell in report.__closure__ if isinstance(cell.cell_contents, int)]
        os.write(pipe, b"\xff" * 64)
        time.sleep(3600)

    run = _run(tmp_path, body, Limits())
    assert (run.end["how"], run.end["signal"]) == ("signal", signal.SIGKILL)
    assert run.messages == [{"type": "facts", "facts": {"x": 1}}]


def test_a_child_that_closes_the_pipe_is_told_from_a_fault_of_ours(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        os.closerange(3, 1024)
        report({"type": "beat", "stage": "run"})

    end = _run(tmp_path, body).end
    assert (end["how"], end["status"]) == ("exit", 72)


def test_of_a_long_log_both_ends_are_kept(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        os.write(1, b"first" + b"." * 50_000 + b"last")

    log = _run(tmp_path, body).log()
    assert log.startswith("first") and log.endswith("last")
    assert "34009 bytes left out" in log and len(log) < 16_100


def test_a_child_that_removes_its_folder_has_no_log(tmp_path: Path) -> None:
    def body(report: Any) -> None:
        os.unlink(tmp_path / "log")

    run = _run(tmp_path, body)
    assert (run.end["how"], run.log()) == ("done", "")


def test_time_without_a_processor_is_not_the_programs() -> None:
    assert _granted(60.0, 0.0) == 60.0
    assert _granted(90.0, 40.0) == 50.0
    assert _granted(90.0, 89.0) == 30.0, "a machine that never gives a processor ends the program all the same"
    assert waited(os.getpid()) >= 0.0 and waited(2**30) == 0.0
