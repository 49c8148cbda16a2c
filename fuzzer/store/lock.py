"""One writer per campaign directory: an flock that dies with its process, so a lock is never stale."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType

import psutil

from fuzzer.exits import Exit, UserError

#: Start times come in clock ticks of 1/100 s and are rounded on the way; a reused pid differs by far more.
_START_TOLERANCE = 1.0


class CampaignLock:
    """Holds ``LOCK`` for the life of a ``with`` block. The file says who: process id and its start time.

    The descriptor is not inherited by child programs, and a forked child that outlives its parent must call
    ``abandon`` (or exec), else it keeps the directory locked.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._descriptor = -1

    def acquire(self) -> None:
        """Take the lock at once or raise ``UserError`` (exit status 6) that names the holder."""
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise UserError(
                f"{self.path}: cannot open the lock ({error.strerror}); mend that or use another directory",
                Exit.DIRECTORY,
            ) from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            owner = os.read(descriptor, 64).split()
            os.close(descriptor)
            pid = owner[0].decode("ascii", "replace") if owner else "unknown"
            raise UserError(
                f"{self.path.parent}: in use by process {pid}; wait for it, stop it with "
                f"`touch {self.path.parent / 'STOP'}`, or use another directory",
                Exit.DIRECTORY,
            ) from None
        except OSError as error:
            os.close(descriptor)
            raise UserError(
                f"{self.path}: its file system cannot lock ({error.strerror}); use a local disk",
                Exit.DIRECTORY,
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {psutil.Process().create_time():.2f}\n".encode(), 0)
        self._descriptor = descriptor

    def release(self) -> None:
        """Give the lock back; harmless when it is not held. The file stays, empty."""
        if self._descriptor >= 0:
            os.ftruncate(self._descriptor, 0)
            self.abandon()

    def abandon(self) -> None:
        """In a forked child: drop the inherited descriptor, leaving the lock to the parent."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    @property
    def held(self) -> bool:
        return self._descriptor >= 0

    def __enter__(self) -> CampaignLock:
        self.acquire()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def holder(path: Path) -> int | None:
    """Process id of the live holder of a lock file, or None. Takes no lock, so it disturbs no start."""
    try:
        words = path.read_text().split()
        pid, started = int(words[0]), float(words[1])
        if abs(psutil.Process(pid).create_time() - started) <= _START_TOLERANCE:
            return pid
    except (OSError, ValueError, IndexError, psutil.Error):
        return None
    return None
