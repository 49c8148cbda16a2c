"""The fork server: imports torch once, then forks one child a request and reports what came of it."""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import socket
import sys
import time
from typing import Any

from harness import sandbox, wire
from harness.runtime import Refused, TorchRuntime
from harness.supervise import Limits, Supervised, kill_children, resident, signal_name

#: How often the limits of the probe child are looked at while it works, in seconds.
_PROBE_TICK = 0.05


class Server:
    """One fork server on one end of a socket pair. ``runtime`` is torch, or the fake of the tests."""

    def __init__(self, sock: socket.socket, runtime: Any) -> None:
        self.sock = sock
        self.runtime = runtime
        self.scratch = ""
        self.limits = Limits()
        self.confined = False
        self._probe: tuple[int, socket.socket] | None = None
        self._gcov: Any = None  # of instrumented libraries, where it was asked for

    def serve(self) -> None:
        """Answer requests until ``quit`` or until the orchestrator is gone."""
        try:
            if not self._greet():
                return
            while True:
                request = wire.receive(self.sock)
                if request["type"] == "quit":
                    return
                self._answer(request)
        except (wire.WireError, BrokenPipeError, ConnectionResetError):
            return
        finally:
            self._close_probe()
            kill_children(keep=())

    def _greet(self) -> bool:
        hello = wire.receive(self.sock)
        try:
            if hello.get("protocol") != wire.PROTOCOL:
                raise Refused(f"protocol {hello.get('protocol')} is not {wire.PROTOCOL}: versions of Eddy are mixed")
            self.scratch = hello["scratch"]
            self.limits = Limits.of(hello.get("limits", {}))
            writable = [self.scratch, *hello.get("writable", [])]
            self.confined = bool(hello.get("confine", True))
            protection = sandbox.confine(writable) if self.confined else {"all": "open: switched off"}
            sandbox.adopt_orphans()  # after the namespaces: this may be another process now
            facts = self.runtime.start(hello, lambda what: wire.send(self.sock, {"type": "progress", "what": what}))
            if "gcov" in hello.get("coverage", ()):
                facts["coverage"]["gcov"] = self._start_gcov()
        except Refused as error:
            wire.send(self.sock, {"type": "refused", "why": str(error)})
            return False
        wire.send(self.sock, {"type": "ready", "protection": protection, "rss": resident(os.getpid()), **facts})
        return True

    def _start_gcov(self) -> dict[str, Any]:
        from harness.coverage.gcov import GcovCoverage
        from harness.coverage.helper import Unavailable

        domain = GcovCoverage()
        try:
            domain.start()
        except Unavailable as error:
            return {"available": False, "why": str(error), "total": 0}
        self._gcov = domain
        return {"available": True, "why": "", "total": 0}

    def _answer(self, request: dict[str, Any]) -> None:
        kind = request["type"]
        if kind == "exec":
            wire.send(self.sock, self._exec(request))
        elif kind == "probe":
            wire.send(self.sock, self._probed(request))
        elif kind == "known":
            self.runtime.known(request.get("coverage", {}))
            if self._gcov:
                self._gcov.mark_known(request.get("coverage", {}).get("gcov", {}))
        elif kind == "arm":
            native = getattr(self.runtime, "domains", {}).get("native")
            wire.send(self.sock, {"type": "armed", "added": native.arm(request["addresses"]) if native else {}})
        elif kind == "catalogue":
            self._catalogue(request)
        elif kind == "symbols":
            names = self.runtime.symbols(request["domain"], request["file"], request["ids"])
            wire.send(self.sock, {"type": "named", "names": names})
        else:
            wire.send(self.sock, {"type": "refused", "why": f"unknown request {kind!r}"})

    # -- exec -----------------------------------------------------------------------------------------------------

    def _exec(self, request: dict[str, Any]) -> dict[str, Any]:
        limits = Limits.of({**self.limits.__dict__, **request.get("limits", {})})
        self.runtime.before_exec(request)
        with self._folder() as folder:
            run = Supervised(folder, limits, self._others())
            run.run(lambda report: self._in_exec_child(request, report, folder))
            observation = self._observation(request, run)
            self.runtime.after_exec(observation, folder)
            wanted = request.get("coverage", True)
            lines = self._gcov.harvest(folder) if self._gcov and wanted else {}
        if wanted:
            observation["coverage"] = self.runtime.harvest() | ({"gcov": lines} if lines else {})
        return observation

    @staticmethod
    def _observation(request: dict[str, Any], run: Supervised) -> dict[str, Any]:
        observation: dict[str, Any] = {
            "type": "observation",
            "id": request.get("id", ""),
            "variant": request.get("variant", ""),
            "stages": [],
            "end": run.end,
            "log": run.log(),
            "rss_peak": run.rss_peak,
            "seconds": run.seconds,
            "cpu": run.cpu,
            "server_rss": resident(os.getpid()),
        }
        for message in run.messages:
            if message["type"] == "staged":
                observation["stages"].append(message["stage"])
            elif message["type"] == "facts":
                observation.update(message["facts"])
        return observation

    def _in_exec_child(self, request: dict[str, Any], report: Any, folder: str) -> None:
        self._forget_wires()
        os.chdir(folder)
        if self.confined:
            sandbox.narrow([folder, *self.runtime.child_writable()])
        if self._gcov:
            self._gcov.child_start(folder)
        self.runtime.exec_child(request, report, folder)
        if self._gcov:
            self._gcov.child_end()

    def _others(self) -> tuple[int, ...]:
        return (self._probe[0],) if self._probe else ()

    def _forget_wires(self) -> None:
        """A child must not be able to speak for its server."""
        self.sock.close()
        if self._probe:
            self._probe[1].close()

    @contextlib.contextmanager
    def _folder(self) -> Any:
        folder = os.path.join(self.scratch, "run")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder, exist_ok=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    # -- probe ----------------------------------------------------------------------------------------------------

    def _probed(self, request: dict[str, Any]) -> dict[str, Any]:
        if self._probe is None or request.get("fresh"):
            self._close_probe()
            self._probe = self._fork_probe()
        pid, sock = self._probe
        try:
            wire.send(sock, request)
            broken = self._await_probe(pid, sock)
            return self._probe_died(pid, broken) if broken else wire.receive(sock)
        except (wire.WireError, OSError):
            return self._probe_died(pid, "signal")

    def _await_probe(self, pid: int, sock: socket.socket) -> str:
        """Wait for an answer or for the end of the child ("" for both), or for a limit it breaks."""
        deadline = time.monotonic() + self.limits.probe_seconds
        while not select.select([sock], [], [], _PROBE_TICK)[0]:
            if time.monotonic() > deadline:
                return "hang"
            if resident(pid) > self.limits.memory:
                return "memory"
        return ""

    def _probe_died(self, pid: int, how: str) -> dict[str, Any]:
        number = 0
        if how != "signal" or not _ends_soon(pid):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
        if self._probe:
            self._probe[1].close()
        self._probe = None
        group, candidate = self.runtime.probe_progress().get()
        name = signal_name(number) if number else f"status {os.WEXITSTATUS(status)}"
        died = {"how": how, "signal": number, "name": name, "group": group, "candidate": candidate}
        return {"type": "probed", "results": [], "died": died}

    def _fork_probe(self) -> tuple[int, socket.socket]:
        here, there = socket.socketpair()
        self.runtime.probe_progress()  # the shared memory must exist before the fork
        pid = os.fork()
        if pid == 0:
            try:
                here.close()
                self.sock.close()
                os.setsid()
                sandbox.die_with_parent()
                sandbox.die_first()
                if self.confined:
                    sandbox.narrow([])
                null = os.open(os.devnull, os.O_RDWR)
                for target in (0, 1, 2):
                    os.dup2(null, target)
                self.runtime.probe_child(there)
            finally:
                os._exit(0)
        there.close()
        return pid, here

    def _close_probe(self) -> None:
        if self._probe:
            pid, sock = self._probe
            sock.close()
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)
            self._probe = None

    # -- catalogue ------------------------------------------------------------------------------------------------

    def _catalogue(self, request: dict[str, Any]) -> None:
        limits = Limits.of({**self.limits.__dict__, "stage_seconds": 1800.0, "total_seconds": 1800.0})
        with self._folder() as folder:
            run = Supervised(folder, limits, self._others())
            # Records are forwarded as they come: deriving takes minutes, and its progress is for a person.
            run.messages = _Forwarder(self.sock)

            def body(report: Any) -> None:
                self._forget_wires()
                os.chdir(folder)
                self.runtime.catalogue_child(request, report, folder)

            run.run(body)
            log = run.log()
        wire.send(self.sock, {"type": "catalogue_done", "end": run.end, "log": log[-2000:]})


class _Forwarder(list[Any]):
    """A list of messages that passes each on at once instead of keeping it."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__()
        self._sock = sock

    def append(self, message: dict[str, Any]) -> None:
        if message["type"] in ("operator", "progress"):
            wire.send(self._sock, message)


def _ends_soon(pid: int) -> bool:
    """Wait up to a second for a child that closed its connection; it stays to be reaped."""
    for _ in range(100):
        if os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            return True
        time.sleep(0.01)
    return False


def main(fd: int, runtime: Any = None) -> None:
    """Entry point: serve on the inherited socket ``fd``; leaves without interpreter teardown.

    Breakpoints of native coverage must not outlive their handler, and a plain exit would run code after it.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is the orchestrator's to handle
    sandbox.die_with_parent()
    sock = socket.socket(fileno=fd)
    sock.setblocking(True)
    Server(sock, runtime or TorchRuntime()).serve()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
