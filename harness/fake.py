"""A harness without torch: same server, same supervision, real children; programs say how they misbehave.

Makes the loop testable in milliseconds. A program's ``META["fake"]`` decides what its child does::

    {"do": "pass" | "wrong_value" | "wrong_gradient" | "mutation" | "metadata" | "compile_error" | "missing_check"
           | "invalid" | "crash" | "eager_crash" | "hang" | "memory" | "garbage" | "output" | "exit" | "orphan"
           | "forks" | "close" | "kill_server",
     "stage": "run",           # where it strikes (crash, hang, memory, exit)
     "chance": 0.5,            # of misbehaving at all, else it passes: a flaky program
     "variants": [""],         # misbehaves only in these variants of an execution, else it passes
     "warm_only": True,        # misbehaves only in servers that were warmed: never in fresh processes
     "plain_only": True,       # misbehaves only with the users' toolchain: never in hastened servers
     "compiled_only": True,    # misbehaves only where kernels are compiled, not interpreted
     "message": "…",           # of a compile error; "op": the operators that are reported as run
     "coverage": [1, 2, 3]}    # ids of the domain "native", file "fake", that it reaches

Its probe child holds every first candidate; the statements ``die()``, ``hang()``, ``hog()`` and ``close()`` end it.

Without the key, behaviour and coverage follow from a checksum of the text, so that a loop has something to learn: most
programs pass, about one in eight is invalid, fails to compile, computes wrong values or crashes.
"""

from __future__ import annotations

import ast
import contextlib
import mmap
import os
import random
import signal
import socket
import time
import zlib
from collections.abc import Callable
from typing import Any

from harness import wire
from harness.server import main as serve

Report = Callable[[dict[str, Any]], None]


class FakeRuntime:
    """Stands in for ``harness.runtime.TorchRuntime``."""

    def __init__(self) -> None:
        self._warm = True
        self._fast = False
        self._progress = _Progress()
        self._known: set[int] = set()
        self._reached: list[int] = []

    def start(self, hello: dict[str, Any], progress: Callable[[str], None]) -> dict[str, Any]:
        progress("pretending to import torch")
        self._warm = hello.get("warm", True)
        self._fast = hello.get("fast", False)
        available = {"available": True, "why": "", "total": 1000}
        return {
            "target": {"torch": "0.0.fake", "git": "", "python": "", "device": "cpu", "cpu": "", "executable": "fake"},
            "coverage": dict.fromkeys(hello.get("coverage", []), available),
            "threads": 1,
            "seconds": 0.0,
        }

    def known(self, coverage: dict[str, dict[str, list[int]]]) -> None:
        self._known.update(coverage.get("native", {}).get("fake", []))

    def before_exec(self, request: dict[str, Any]) -> None:
        """The fake's stand-in for coverage memory shared with the child: what it will reach is known beforehand."""
        self._reached = behaviour(request["text"])["coverage"]

    def harvest(self) -> dict[str, dict[str, list[int]]]:
        fresh = sorted(set(self._reached) - self._known)
        self._known.update(fresh)
        return {"native": {"fake": fresh}} if fresh else {}

    def after_exec(self, observation: dict[str, Any], folder: str) -> None:
        """Nothing is compiled, so nothing is kept."""

    def symbols(self, domain: str, file: str, ids: list[int]) -> list[str]:
        return [f"{domain}:{file}:{number}" for number in ids]

    def exec_child(self, request: dict[str, Any], report: Report, folder: str) -> None:
        what = behaviour(request["text"])
        variant = request.get("variant", "")
        fast = self._fast and not request.get("options", {}).get("plain")
        wrong_server = (what["warm_only"] and not self._warm) or (what["plain_only"] and fast)
        if wrong_server or variant not in (what["variants"] or [variant]):
            what["do"] = "pass"
        FakeChild(what, request, report).run()

    def child_writable(self) -> list[str]:
        return []

    def probe_progress(self) -> Any:
        return self._progress

    def probe_child(self, sock: socket.socket) -> None:
        while True:
            try:
                request = wire.receive(sock)
            except wire.WireError:
                return
            results = []
            for number, group in enumerate(request.get("groups", [])):
                for candidate, statement in enumerate(group):
                    self._progress.set(number, candidate)
                    _misbehave(statement, sock)
                results.append(_held(group))
            wire.send(sock, {"type": "probed", "results": results})

    def catalogue_child(self, request: dict[str, Any], report: Report, folder: str) -> None:
        report({"type": "operator", "record": {"name": "fake"}})


class _Progress:
    """Where the probe child is, in memory shared with it."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, 2)

    def set(self, group: int, candidate: int) -> None:
        self._map[:2] = bytes((group, candidate))

    def get(self) -> tuple[int, int]:
        group, candidate = self._map[:2]
        return group, candidate


def _misbehave(statement: str, sock: socket.socket) -> None:
    if statement == "die()":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif statement == "hang()":
        time.sleep(3600)
    elif statement == "hog()":
        _hog()
    elif statement == "close()":
        sock.close()
        time.sleep(3600)


def _hog() -> None:
    hog = bytearray(0)
    while True:
        hog += bytearray(b"x" * (16 << 20))


def _held(candidates: list[str]) -> dict[str, Any]:
    """Every first candidate holds, and binds a small float tensor."""
    name = candidates[0].split("=")[0].strip() if candidates and "=" in candidates[0] else "x"
    tensor = {"kind": "tensor", "dtype": "float32", "shape": [2, 3], "stride": [3, 1], "offset": 0}
    facts = {name: {**tensor, "requires_grad": False, "device": "cpu", "leaf": True, "values": []}}
    return {"chosen": 0 if candidates else -1, "errors": [], "facts": facts if candidates else {}, "seconds": 0.0}


#: What a program without ``META["fake"]`` does, by its checksum modulo 32.
_OFTEN = {0: "invalid", 1: "compile_error", 2: "wrong_value", 3: "crash"}


def behaviour(text: str) -> dict[str, Any]:
    """What a program's child will do: from ``META["fake"]``, else from a checksum of its text."""
    number = zlib.crc32(text.encode())
    default = {
        "do": _OFTEN.get(number % 32, "pass"),
        "stage": "run",
        "chance": 1.0,
        "variants": [],
        "warm_only": False,
        "plain_only": False,
        "compiled_only": False,
        "message": "assertion in fake lowering",
        "op": "aten.relu.default",
        "coverage": [number % 997, (number >> 8) % 97],
    }
    try:
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "META":
                return {**default, **ast.literal_eval(node.value).get("fake", {})}
    except (SyntaxError, ValueError):
        pass
    return default


class FakeChild:
    """Walks through the stages, and misbehaves where told."""

    def __init__(self, what: dict[str, Any], request: dict[str, Any], report: Report) -> None:
        self.what = what
        self.options = request.get("options", {})
        self.report = report
        shows = random.SystemRandom().random() < what["chance"]
        if what["compiled_only"] and self.options.get("interpret"):
            shows = False
        self.do = what["do"] if shows else "pass"

    def run(self) -> None:
        self.stage("build")
        if not self.options.get("skip_eager"):
            refuses = self.do in ("invalid", "missing_check")
            if self.do == "eager_crash":
                self.report({"type": "beat", "stage": "eager"})
                os.kill(os.getpid(), signal.SIGSEGV)
            self.stage("eager", _fault("RuntimeError", "eager refuses") if refuses else None)
            ops = [{"op": name, "inputs": [-1], "tensors": [], "outputs": []} for name in self.what["op"].split()]
            self.report({"type": "facts", "facts": {"ops": ops, "values": [[]]}})
        fails = self.do in ("compile_error", "invalid")
        self.stage("compile", _fault("InductorError", self.what["message"]) if fails else None)
        self.stage("run")
        if self.options.get("interpret"):
            self.report({"type": "facts", "facts": {"interpreted": {"kernels": 1, "cpu": 0.0, "refused": []}}})
        self.report({"type": "facts", "facts": {"leaves": self.leaves()}})

    def stage(self, name: str, fault: dict[str, Any] | None = None) -> None:
        self.report({"type": "beat", "stage": name})
        if name == self.what["stage"]:
            self.misbehave()
        self.report({"type": "staged", "stage": {"name": name, "seconds": 0.001, "cpu": 0.001, "fault": fault}})

    def misbehave(self) -> None:
        if self.do == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        elif self.do == "hang":
            time.sleep(3600)
        elif self.do == "memory":
            _hog()
        elif self.do == "garbage":
            for fd in range(3, 64):
                try:
                    os.write(fd, b"\xff" * 64)
                except OSError:
                    continue
            time.sleep(3600)
        elif self.do == "output":
            while True:
                os.write(1, b"noise " * 4096)
        elif self.do == "exit":
            os._exit(3)
        elif self.do == "forks":
            while True:
                if os.fork() == 0:
                    time.sleep(3600)
        elif self.do == "orphan" and os.fork() == 0:
            os.setsid()
            time.sleep(3600)
        elif self.do == "close":
            os.closerange(0, 4096)
        elif self.do == "kill_server":
            with contextlib.suppress(PermissionError):
                os.kill(os.getppid(), signal.SIGKILL)
            time.sleep(3600)

    def leaves(self) -> list[dict[str, Any]]:
        tensor = {"dtype": "float32", "shape": [4], "stride": [1], "offset": 0, "requires_grad": False, "device": "cpu"}
        paths = {"wrong_value": "out", "wrong_gradient": "grad.in[0]", "mutation": "in[0]", "metadata": "out"}
        if self.do not in paths:
            return []
        leaf: dict[str, Any] = {"path": paths[self.do], "eager": tensor, "compiled": dict(tensor), "numel": 4}
        if self.do == "metadata":
            leaf["compiled"]["dtype"] = "float64"
            return [leaf | {"differing": 0}]
        numbers = {"differing": 4, "sign_of_zero": 0, "nan_eager": 0, "nan_compiled": 0, "nan_mismatch": 0}
        errors = {"max_abs": 1.0, "max_rel": 1.0, "max_ulp": 8e6, "eager_err": 0.0, "compiled_err": 8e6}
        rest = {"inf_mismatch": 0, "excess_err": 8e6, "eager_rmse": 0.0, "compiled_rmse": 1.0, "reference_rms": 1.0}
        return [leaf | numbers | errors | rest | {"same": False, "reference": "float64", "worst": []}]


def _fault(kind: str, message: str) -> dict[str, Any]:
    return {"type": kind, "message": message, "cause_type": kind, "cause_message": message,
            "frames": ["torch/_inductor/fake.py:lower"]}  # fmt: skip


def main(fd: int) -> None:
    serve(fd, FakeRuntime())
