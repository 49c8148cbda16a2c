"""One fork server, supervised: started, asked, restarted when it dies. The only place that runs other processes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.exits import Exit, UserError
from fuzzer.observation import ENDED_TWICE, End, Observation
from fuzzer.program import Program
from fuzzer.staging import server_command, stage_harness, target_environment
from harness import wire

#: Starting takes 3 s of import and up to 20 s of first compiles on a busy machine; ten times that is a hang.
_START_SECONDS = 300.0
#: What a request may take beyond the child's own limits before the server itself counts as hung.
_GRACE_SECONDS = 20.0
#: On a machine under load a child's limits are stretched by the time that it waits for a processor, so many times.
_STRETCH = 3.0


@dataclass(frozen=True)
class Target:
    """A Python interpreter with the torch under test, and a device. ``fake`` serves without torch (tests)."""

    python: str = sys.executable
    device: str = "cpu"
    fake: bool = False


@dataclass(frozen=True)
class WorkerOptions:
    """How a fork server is started. ``coverage`` names the domains to arm; ``plant`` a bug of self-tests."""

    coverage: tuple[str, ...] = ("native", "python", "events")
    plant: str | None = None
    limits: dict[str, Any] = field(default_factory=dict)
    warm: bool = True
    fast: bool = False  # the hastened toolchain (see harness.toolchain); what users have, otherwise
    confine: bool = True


def _own_limits(program: Program) -> dict[str, Any]:
    """``META["timeout"]``: seconds a stage that the program itself asks for."""
    seconds = program.meta.get("timeout")
    return {"stage_seconds": float(seconds)} if isinstance(seconds, (int, float)) else {}


class WorkerLost(Exception):
    """The fork server died or answered garbage; the request in flight is lost, nothing else."""


class TargetRefused(UserError):
    """The target cannot start: no torch, broken torch, no compiler."""

    def __init__(self, message: str) -> None:
        super().__init__(message, Exit.TARGET)


class Worker:
    """One fork server and the requests to it, one at a time."""

    def __init__(self, target: Target, folder: Path, options: WorkerOptions, cache: Path | None = None) -> None:
        self.target = target
        self.options = options
        self.folder = folder
        self.cache = cache or folder / "cache"
        self.ready: dict[str, Any] = {}
        self.programs = 0  # since the last start
        self.restarts = 0
        self.server_rss = 0
        self.last_words = ""  # last line that a lost server printed
        self._busy = False
        self._process: asyncio.subprocess.Process | None = None
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._stderr: Any = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.returncode is None and self._writer is not None

    @property
    def pid(self) -> int:
        return self._process.pid if self._process else 0

    async def start(self, progress: Callable[[str], None] = lambda line: None) -> dict[str, Any]:
        """Start the fork server and wait until it is warm. Returns the facts of ``ready``.

        Raises:
            TargetRefused: one line why, exit code 4.
        """
        if not self.target.fake and shutil.which(self.target.python) is None:
            raise TargetRefused(f"target {self.target.python!r} is not an executable; pass --target /path/to/python")
        scratch = self.folder / "scratch"
        shutil.rmtree(scratch, ignore_errors=True)
        scratch.mkdir(parents=True, exist_ok=True)
        self.cache.mkdir(parents=True, exist_ok=True)
        stage = stage_harness(self.folder)
        hello = {
            "type": "hello",
            "protocol": wire.PROTOCOL,
            "device": self.target.device,
            "scratch": str(scratch),
            "writable": [str(self.cache)],
            "coverage": list(self.options.coverage),
            "plant": self.options.plant,
            "limits": self.options.limits,
            "warm": self.options.warm,
            "fast": self.options.fast,
            "confine": self.options.confine,
        }
        try:
            await self._spawn(scratch, stage)
            self.ready = await asyncio.wait_for(self._handshake(hello, progress), _START_SECONDS)
        except (WorkerLost, asyncio.TimeoutError):
            await self.kill()
            words = self.last_words or "no message; is it a Python interpreter?"
            raise TargetRefused(f"target {self.target.python} died while starting: {words}") from None
        except BaseException:
            await self.kill()
            raise
        self.programs = 0
        self._busy = False
        self.server_rss = int(self.ready.get("rss", 0))
        return self.ready

    async def _spawn(self, scratch: Path, stage: Path) -> None:
        ours, theirs = socket.socketpair()
        self._stderr = open(self.folder / "server.log", "wb")  # noqa: SIM115 (closed in kill)
        try:
            self._process = await asyncio.create_subprocess_exec(
                *server_command(self.target.python, stage, theirs.fileno(), self.target.fake),
                pass_fds=(theirs.fileno(),),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=self._stderr,
                stderr=self._stderr,
                env=target_environment(scratch, self.cache),
                cwd=scratch,
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise TargetRefused(f"target {self.target.python} cannot be run: {error.strerror}") from None
        finally:
            theirs.close()
        self._reader, self._writer = await asyncio.open_connection(sock=ours, limit=wire.MAX_FRAME)

    async def _handshake(self, hello: dict[str, Any], progress: Callable[[str], None]) -> dict[str, Any]:
        await self._send(hello)
        while True:
            message = await self._receive()
            if message["type"] == "progress":
                progress(str(message["what"]))
            elif message["type"] == "refused":
                raise TargetRefused(f"target {self.target.python}: {message['why']}")
            elif message["type"] == "ready":
                return message

    def _error_tail(self) -> str:
        try:
            lines = (self.folder / "server.log").read_text("utf-8", "replace").strip().splitlines()
        except OSError:
            return ""
        return lines[-1] if lines else ""

    # -- requests -----------------------------------------------------------------------------------------------

    async def execute(
        self,
        program: Program,
        variant: str = "",
        options: dict[str, Any] | None = None,
        coverage: bool = True,
        limits: dict[str, Any] | None = None,
    ) -> Observation:
        """Run one program. When the fork server dies under it, a fresh one runs it once more.

        An observation whose end is ``lost`` means that both died (``why`` is then ``ENDED_TWICE``).

        Raises:
            TargetRefused: the server does not start any more.
        """
        request: dict[str, Any] = {
            "type": "exec",
            "id": program.id,
            "text": program.text,
            "variant": variant,
            "options": options or {},
            "coverage": coverage,
            "limits": {**_own_limits(program), **(limits or {})},
        }
        total = float(request["limits"].get("total_seconds", self.options.limits.get("total_seconds", 120.0)))
        for last in (False, True):
            await self._ensure_alive()
            try:
                message = await self._ask(request, _STRETCH * total + _GRACE_SECONDS, "observation")
                break
            except WorkerLost as lost:
                if last:
                    why = f"{ENDED_TWICE}: {lost}"
                    return Observation(id=program.id, variant=variant, stages=(), end=End(how="lost", why=why))
        self.programs += 1
        self.server_rss = int(message.get("server_rss", 0))
        return Observation.from_map(message)

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, reset: bool = False
    ) -> dict[str, Any]:
        """Try statements on live tensors (see ``harness.probe``). Raises ``WorkerLost``."""
        await self._ensure_alive()
        request = {"type": "probe", "groups": groups, "names": names or [], "reset": reset}
        return await self._ask(request, 10.0 + _GRACE_SECONDS, "probed")

    async def mark_known(self, coverage: dict[str, dict[str, list[int]]]) -> None:
        """Tell the server what others found, so that it disarms it. Raises ``WorkerLost``."""
        if coverage and self.alive:
            try:
                await self._send({"type": "known", "coverage": coverage})
            except WorkerLost:
                await self.kill()
                raise

    async def arm(self, addresses: dict[str, list[int]]) -> dict[str, int]:
        """Arm further addresses of native code, library → offsets (see ``fuzzer.coverage_blocks``), until the server
        is replaced. Returns library → number that was new to it. Raises ``WorkerLost``."""
        await self._ensure_alive()
        answer = await self._ask({"type": "arm", "addresses": addresses}, 120.0, "armed")
        return {str(library): int(number) for library, number in answer["added"].items()}

    async def symbols(self, domain: str, file: str, ids: list[int]) -> list[str]:
        await self._ensure_alive()
        answer = await self._ask({"type": "symbols", "domain": domain, "file": file, "ids": ids}, 120.0, "named")
        return [str(name) for name in answer["names"]]

    async def catalogue(self, progress: Callable[[str], None] = lambda line: None) -> AsyncIterator[dict[str, Any]]:
        """Derive the operators of the target, one record at a time. Raises ``TargetRefused`` when it fails."""
        await self._ensure_alive()
        await self._send({"type": "catalogue", "device": self.target.device})
        while True:
            try:
                message = await self._receive()
            except WorkerLost as lost:
                await self.kill()
                raise TargetRefused(f"deriving operators failed: {lost}; {self.last_words or 'no message'}") from None
            if message["type"] == "operator":
                yield message["record"]
            elif message["type"] == "progress":
                progress(str(message["what"]))
            else:
                if message.get("end", {}).get("how") != "done":
                    tail = str(message.get("log", "")).strip().splitlines()
                    raise TargetRefused(f"deriving operators failed: {tail[-1] if tail else message.get('end')}")
                return

    async def _ensure_alive(self) -> None:
        if not self.alive:
            await self.revive()

    async def revive(self) -> None:
        """Start a fresh server in place of this one. Raises ``TargetRefused``."""
        await self.kill()
        self.restarts += 1
        await self.start()

    async def _ask(self, request: dict[str, Any], seconds: float, expected: str) -> dict[str, Any]:
        self._busy = True  # stays so when this is cancelled: the answer is still to come, so the server is of no use
        try:
            await self._send(request)
            answer = await asyncio.wait_for(self._receive(), seconds)
            if answer["type"] != expected:
                raise WorkerLost(f"the fork server answered {answer['type']!r} to {request['type']!r}")
            self._busy = False
            return answer
        except asyncio.TimeoutError:
            await self.kill()
            raise WorkerLost(f"the fork server did not answer within {seconds:g} s") from None
        except WorkerLost:
            await self.kill()
            raise

    async def _send(self, message: dict[str, Any]) -> None:
        if self._writer is None:
            raise WorkerLost("the fork server is not running")
        try:
            self._writer.write(wire.pack(message))
            await self._writer.drain()
        except (ConnectionError, BrokenPipeError):
            raise WorkerLost("the fork server closed the connection") from None

    async def _receive(self) -> dict[str, Any]:
        assert self._reader is not None
        try:
            length = wire.frame_length(await self._reader.readexactly(4))
            return wire.unpack(await self._reader.readexactly(length))
        except (asyncio.IncompleteReadError, ConnectionError):
            raise WorkerLost("the fork server died") from None
        except wire.WireError as error:
            raise WorkerLost(f"the fork server sent garbage ({error})") from None

    # -- end ------------------------------------------------------------------------------------------------------

    async def stop(self) -> None:
        """Ask the server to leave, then make sure."""
        if self.alive and not self._busy:
            with contextlib.suppress(WorkerLost):
                await self._send({"type": "quit"})
            with contextlib.suppress(asyncio.TimeoutError):
                assert self._process is not None
                await asyncio.wait_for(self._process.wait(), 3.0)
        await self.kill()

    async def kill(self) -> None:
        """End the server now. Its children die with it (process namespace, else parent-death signal)."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._process is not None:
            if self._process.returncode is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(self._process.pid, signal.SIGKILL)
                with contextlib.suppress(ProcessLookupError):
                    self._process.kill()
            await self._process.wait()
            self._process = None
        if self._stderr is not None:
            self._stderr.close()
            self._stderr = None
            self.last_words = self._error_tail()

    def discard(self) -> None:
        """Remove the worker's folder (not its cache, when that is shared)."""
        shutil.rmtree(self.folder, ignore_errors=True)
