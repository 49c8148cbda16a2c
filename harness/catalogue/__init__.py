"""The operators of a target, derived from the target itself: what it has, how each is called, what really works.

Sources are PyTorch's own test databases (OpInfo, ModuleInfo), Python's operators, and the dispatcher's schemas.
Everything in a record has been executed from source text. ``harness.catalogue.source`` describes the records'
arguments and turns them into text; it needs no torch.
"""

from __future__ import annotations

import os
import platform
import signal
import socket
import sys
from collections.abc import Callable, Iterator
from typing import Any

from harness import wire


class CatalogueError(Exception):
    """The derivation ended before its end; the message says why."""


def operators(device: str = "cpu", progress: Callable[[str], None] | None = None) -> Iterator[dict[str, Any]]:
    """Derive the operators of this interpreter's torch; about a minute on one core.

    A record is plain data: ``name``, ``variant``, ``family`` (empty: the reader assigns it), ``aten`` (packets that
    its calls dispatched, as ``"aten.convolution"``), ``forms`` and ``calls`` (see ``harness.catalogue.source``; the
    first form is the one every call was replayed in, unless it lists its ``calls``), ``dtypes`` (tried, not
    believed), ``autograd``, ``random`` (draws from the random generator), ``schema`` (texts), ``lowering``
    (``lowered`` | ``decomposed`` | ``fallback`` | ``none``: how Inductor takes it).

    The work is done in a forked child, because it needs stand-ins in ``sys.modules``; this process must have run
    no thread pool. ``progress`` gets a line every few seconds and one for each operator dropped.

    Raises:
        CatalogueError: the child ended early, e.g. because this torch has no test databases.
    """
    here, there = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        here.close()
        _serve(device, there)  # never returns
    there.close()
    try:
        while True:
            try:
                message = wire.receive(here)
            except wire.WireError:
                raise CatalogueError("the process that derives the operators died") from None
            if message["type"] == "operator":
                yield message["record"]
            elif message["type"] == "progress" and progress is not None:
                progress(message["what"])
            elif message["type"] == "failed":
                raise CatalogueError(message["why"])
            elif message["type"] == "done":
                return
    finally:
        here.close()
        os.kill(pid, signal.SIGTERM)  # not yet waited for, so the number is still its own
        os.waitpid(pid, 0)


def _serve(device: str, sock: socket.socket) -> None:
    status = 1
    try:
        # Ask for an orderly end, so that the child that is measuring is ended too. No group of its own: whoever
        # supervises this process by its group must reach all of it.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        from harness.catalogue.derive import derive

        for record in derive(device, lambda line: wire.send(sock, {"type": "progress", "what": line})):
            wire.send(sock, {"type": "operator", "record": record})
        wire.send(sock, {"type": "done"})
        status = 0
    except BrokenPipeError:
        status = 1  # the reader has gone
    except Exception as error:  # anything else is told to the reader, who raises it
        wire.send(sock, {"type": "failed", "why": f"{type(error).__name__}: {error}"})
    finally:
        os._exit(status)


def fingerprint(device: str = "cpu") -> dict[str, str]:
    """What the derived knowledge holds for: versions of torch and Python, device, instruction set, machine."""
    import torch

    return {
        "torch": torch.__version__,
        "git": str(torch.version.git_version or ""),
        "python": platform.python_version(),
        "device": device,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "machine": platform.machine(),
    }
