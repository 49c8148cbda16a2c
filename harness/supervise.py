"""One forked child under limits: what the fork server does from the fork to the last orphan's end."""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness import wire
from harness.sandbox import die_first, die_with_parent

#: How often limits are looked at. Short enough that a runaway allocation is met within its first gigabyte.
_TICK = 0.02
_LOG_HEAD = 4_000
_LOG_TAIL = 12_000


@dataclass(frozen=True)
class Limits:
    """What one child may use. Seconds are wall time, sizes are bytes.

    The defaults suit two busy cores: a normal program needs about one second, the slowest real compiles about ten.
    """

    stage_seconds: float = 60.0
    eager_seconds: float = 15.0  # eager, observe, float64: no compiler in them
    total_seconds: float = 120.0
    probe_seconds: float = 5.0  # one batch of statements: longer, and it is a hanging operator
    memory: int = 4 << 30
    output: int = 16 << 20
    file_size: int = 1 << 30
    processes: int = 64

    @classmethod
    def of(cls, values: dict[str, Any]) -> Limits:
        known = {key: type(getattr(cls, key))(value) for key, value in values.items() if hasattr(cls, key)}
        return cls(**known)

    def seconds_for(self, stage: str) -> float:
        slow = stage in ("compile", "run", "backward", "second", "random_path", "catalogue")
        return self.stage_seconds if slow else min(self.eager_seconds, self.stage_seconds)


class Supervised:
    """Forks ``body`` into a child of its own session and follows it to its end.

    ``body(report)`` runs in the child; ``report`` sends a map to this side. Afterwards ``messages`` holds what was
    reported, ``end`` how the child ended, and no descendant of it is alive.
    """

    def __init__(self, folder: str, limits: Limits, keep: tuple[int, ...] = ()) -> None:
        """``keep`` are children of this process that belong to somebody else (the probe child)."""
        self.limits = limits
        self.keep = keep
        self.folder = folder
        self.log_path = os.path.join(folder, "log")
        self.messages: list[dict[str, Any]] = []
        self.end: dict[str, Any] = {}
        self.rss_peak = 0
        self.seconds = 0.0
        self.cpu = 0.0
        self.stage = "start"
        self._pid = 0
        self._inherited = 0
        self._buffer = bytearray()
        self._finished = False
        self._delays: dict[int, float] = {}
        self._starved_before = 0.0  # at the beginning of the stage

    def run(self, body: Callable[[Callable[[dict[str, Any]], None]], None]) -> None:
        read_end, write_end = os.pipe()
        started = time.monotonic()
        server = os.getpid()
        self._inherited = resident(server)
        self._pid = os.fork()
        if self._pid == 0:
            os.close(read_end)
            _become_child(self.log_path, self.limits, body, write_end, server)
        os.close(write_end)
        try:
            self._follow(read_end, started)
        finally:
            os.close(read_end)
            self._kill_rest()
            self.seconds = time.monotonic() - started

    # -- following --------------------------------------------------------------------------------------------

    def _follow(self, read_end: int, started: float) -> None:
        stage_started = started
        closed = False
        while True:
            if closed:
                time.sleep(0.001)
            elif select.select([read_end], [], [], _TICK)[0]:
                chunk = os.read(read_end, 1 << 16)
                closed = not chunk
                before = self.stage
                self._feed(chunk)
                if self.stage != before:
                    stage_started, self._starved_before = time.monotonic(), self._starved()
            if self._reaped():
                self._drain(read_end)
                return
            now = time.monotonic()
            broken = self._broken_limit(now - started, now - stage_started)
            if broken:
                how, why = broken
                self.end = {
                    "how": how,
                    "signal": signal.SIGKILL,
                    "status": 0,
                    "stage": self.stage,
                    "why": why,
                }
                self._signal_group(signal.SIGKILL)
                _pid, _status, usage = os.wait4(self._pid, 0)
                self.cpu = usage.ru_utime + usage.ru_stime
                self._drain(read_end)
                return

    def _broken_limit(self, total: float, in_stage: float) -> tuple[str, str] | None:
        limit = self.limits.seconds_for(self.stage)
        if in_stage > limit and _granted(in_stage, self._starved() - self._starved_before) > limit:
            return "timeout", f"stage {self.stage} took more than {limit:g} s"
        if total > self.limits.total_seconds and _granted(total, self._starved()) > self.limits.total_seconds:
            return "timeout", f"the program took more than {self.limits.total_seconds:g} s"
        processes = (self._pid, *descendants(self._pid))
        for pid in processes:
            self._delays[pid] = max(waited(pid), self._delays.get(pid, 0.0))
        sizes = [resident(pid) for pid in processes]
        if len(sizes) - 1 > self.limits.processes:
            return "processes", f"the program started more than {self.limits.processes} processes"
        largest = max(sizes)
        self.rss_peak = max(self.rss_peak, largest)
        # What was inherited from this process is shared, though every process counts it. Children may share more
        # than that among themselves, hence the factor for all together.
        total = sum(max(0, size - self._inherited) for size in sizes)
        if largest > self.limits.memory or total > 2 * self.limits.memory:
            return "memory", f"resident memory went past {self.limits.memory >> 20} MiB"
        with contextlib.suppress(OSError):
            if os.stat(self.log_path).st_size > self.limits.output:
                return "output", f"the log went past {self.limits.output >> 20} MiB"
        return None

    def _starved(self) -> float:
        """Seconds that the child and its own children have waited for a processor while they could have run."""
        return sum(self._delays.values())

    def _reaped(self) -> bool:
        try:
            pid, status, usage = os.wait4(self._pid, os.WNOHANG)
        except ChildProcessError:
            self.end = {
                "how": "lost",
                "signal": 0,
                "status": 0,
                "stage": self.stage,
                "why": "the child vanished",
            }
            return True
        if pid == 0:
            return False
        self.cpu = usage.ru_utime + usage.ru_stime
        self.rss_peak = max(self.rss_peak, usage.ru_maxrss * 1024)
        self.end = {"how": "exit", "signal": 0, "status": 0, "stage": self.stage, "why": ""}
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            how = "files" if number == signal.SIGXFSZ else "signal"
            self.end |= {"how": how, "signal": number, "why": f"died with {signal_name(number)}"}
        else:
            code = os.WEXITSTATUS(status)
            why = (
                "closed the descriptors of its harness" if code == 72 else f"left with status {code} before it was done"
            )
            self.end |= {"status": code, "why": why}
        return True

    def _drain(self, read_end: int) -> None:
        """Take what is still in the pipe, then settle how the child ended."""
        os.set_blocking(read_end, False)
        with contextlib.suppress(BlockingIOError):
            while chunk := os.read(read_end, 1 << 16):
                self._feed(chunk)
        if self._finished and self.end.get("how") == "exit":
            self.end |= {"how": "done", "why": ""}
        self.end["stage"] = self.stage

    def _feed(self, chunk: bytes) -> None:
        self._buffer += chunk
        while len(self._buffer) >= 4:
            try:
                length = wire.frame_length(bytes(self._buffer[:4]))
                if len(self._buffer) < 4 + length:
                    return
                message = wire.unpack(bytes(self._buffer[4 : 4 + length]))
            except wire.WireError:
                self._buffer.clear()  # the program wrote into our pipe; what follows cannot be trusted
                self._signal_group(signal.SIGKILL)
                return
            del self._buffer[: 4 + length]
            if message["type"] == "beat":
                self.stage = str(message.get("stage", ""))
            elif message["type"] == "done":
                self._finished = True
            else:
                self.messages.append(message)

    # -- ending -----------------------------------------------------------------------------------------------

    def _signal_group(self, number: int) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._pid, number)

    def _kill_rest(self) -> None:
        """Kill the session and every orphan that was handed to this process (see ``adopt_orphans``)."""
        self._signal_group(signal.SIGKILL)
        kill_children(self.keep)

    def log(self) -> str:
        """Head and tail of what the child printed."""
        try:
            with open(self.log_path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                if size <= _LOG_HEAD + _LOG_TAIL:
                    return file.read().decode("utf-8", "replace")
                head = file.read(_LOG_HEAD)
                file.seek(size - _LOG_TAIL)
                cut = f"\n… {size - _LOG_HEAD - _LOG_TAIL} bytes left out …\n".encode()
                return (head + cut + file.read()).decode("utf-8", "replace")
        except OSError:
            return ""


def _granted(wall: float, starved: float) -> float:
    """Wall seconds less those in which the machine had no processor for the child; a third of them at the least."""
    return max(wall - starved, wall / 3.0)


def waited(pid: int) -> float:
    """Seconds that a process has stood in a run queue; 0 where the kernel does not tell (no scheduler statistics)."""
    try:
        with open(f"/proc/{pid}/schedstat", "rb") as file:
            return int(file.read().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return 0.0


def signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def kill_children(keep: tuple[int, ...]) -> None:
    """Kill and reap every child of this process but ``keep``; loops because each may leave orphans of its own."""
    for _round in range(200):
        children = [pid for pid in _children(os.getpid()) if pid not in keep]
        # Grandchildren as well: a program that forks without end must lose all its forkers at once.
        for pid in [*children, *(other for child in children for other in descendants(child))]:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
        if not children:
            return


def descendants(pid: int) -> list[int]:
    """Children of a process, their children, and so on; parents before children."""
    found: list[int] = []
    level = _children(pid)
    while level:
        found += level
        level = [child for parent in level for child in _children(parent)]
    return found


def _children(pid: int) -> list[int]:
    """Children that any thread of a process started. Empty on a kernel without CONFIG_PROC_CHILDREN."""
    found: list[int] = []
    with contextlib.suppress(OSError):  # the process may end while it is looked at
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += [int(child) for child in file.read().split()]
    return found


def resident(pid: int) -> int:
    """Resident memory of a process in bytes; 0 when it is gone."""
    try:
        with open(f"/proc/{pid}/statm") as file:
            return int(file.read().split()[1]) * _PAGE
    except (OSError, IndexError, ValueError):
        return 0


_PAGE = resource.getpagesize()


def _become_child(
    log_path: str, limits: Limits, body: Callable[[Callable[[dict[str, Any]], None]], None], write_end: int, server: int
) -> None:
    """Never returns. Own session, own log, no stdin, limits in force; then ``body``."""
    status = 70  # EX_SOFTWARE: body raised what it should have reported
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != server:
            os._exit(0)  # it died before it could be asked to take this child along
        die_first()
        log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
        null = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((null, 0), (log, 1), (log, 2)):
            os.dup2(source, target)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limits.file_size, limits.file_size))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)

        def report(message: dict[str, Any]) -> None:
            view = memoryview(wire.pack(message))
            while view:
                try:
                    view = view[os.write(write_end, view) :]
                except OSError as error:
                    if error.errno == errno.EINTR:
                        continue
                    # 71: the server is gone; 72: the program closed our pipe.
                    os._exit(72 if error.errno == errno.EBADF else 71)

        body(report)
        report({"type": "done"})
        status = 0
    except BaseException:  # nothing may unwind into the server's own frames
        import traceback

        with contextlib.suppress(Exception):
            traceback.print_exc()
    finally:
        with contextlib.suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)
