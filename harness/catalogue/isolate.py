"""Run many small jobs in forked children, so that one that kills or hangs the interpreter costs only itself."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from harness import wire

#: Jobs per child: a fork of a large parent costs about 50 ms, and what a job leaks lives as long as the child.
BATCH = 48

#: Seconds a job may take; the slowest honest one takes about 2 on a busy machine.
PATIENCE = 60.0


def run_all(jobs: Sequence[Callable[[], dict[str, Any]]]) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
    """(index, result, "") for each job in order; (index, None, why) for one that raised, died or hung."""
    start = 0
    while start < len(jobs):
        done = 0
        for index, result, why in _child(jobs, start, min(start + BATCH, len(jobs))):
            yield index, result, why
            done += 1
        start += done


def _child(
    jobs: Sequence[Callable[[], dict[str, Any]]], start: int, stop: int
) -> Iterator[tuple[int, dict[str, Any] | None, str]]:
    """Results of one forked child, up to the job that ended it."""
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            here.close()
            _work(jobs, start, stop, there)
            status = 0
        finally:
            os._exit(status)
    there.close()
    try:
        for index in range(start, stop):
            try:
                if not select.select([here], [], [], PATIENCE)[0]:
                    yield index, None, f"no answer within {PATIENCE:.0f} s"
                    return
                message = wire.receive(here)
            except (wire.WireError, OSError):
                yield index, None, f"the child died ({_reap(pid)})"
                pid = 0
                return
            yield index, message["result"], message["why"]
    finally:
        here.close()
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            _reap(pid)


def _reap(pid: int) -> str:
    _, status = os.waitpid(pid, 0)
    return f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit {os.WEXITSTATUS(status)}"


def _work(jobs: Sequence[Callable[[], dict[str, Any]]], start: int, stop: int, sock: socket.socket) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    for index in range(start, stop):
        result, why = None, ""
        try:
            result = jobs[index]()
        except Exception as error:  # the reason is the answer
            why = f"{type(error).__name__}: {error}"[:300]
        wire.send(sock, {"type": "job", "result": result, "why": why})
