"""The probe child: keeps live tensors and tries statements on them, so that engines need no shape rules.

Request: ``{"type": "probe", "reset": bool, "setup": [line, …], "groups": [[statement, …], …], "names": [[…], …]}``.
For each group the statements are tried in order until one holds. Answer, one map a group::

    {"chosen": 2, "errors": ["IndexError: Dimension out of range …", …], "facts": {"d": {...}}, "seconds": 0.001}

``chosen`` is -1 when none held. ``facts`` describe the names that the chosen statement bound or ``names`` asked for:
``kind`` tensor | module | int | float | bool | str | tuple | list | other; for tensors the wire's ``TensorMap`` and
``values`` (words); for sequences ``length`` and the first eight ``items``; for plain numbers ``text``.
"""

from __future__ import annotations

import contextlib
import io
import mmap
import socket
import struct
import time
from typing import Any

import torch

from harness import compare, execution, observe, wire
from harness.faults import qualified_name

_ERROR_CAP = 160
_GROUP = struct.Struct("<ii")


class Progress:
    """Which candidate is being tried, in memory shared with the server: all that is left when a statement kills us."""

    def __init__(self) -> None:
        self._map = mmap.mmap(-1, _GROUP.size)

    def set(self, group: int, candidate: int) -> None:
        self._map[: _GROUP.size] = _GROUP.pack(group, candidate)

    def get(self) -> tuple[int, int]:
        group, candidate = _GROUP.unpack(self._map[: _GROUP.size])
        return group, candidate


def serve(sock: socket.socket, progress: Progress) -> None:
    """Answer probe requests until the server closes the connection."""
    names: dict[str, Any] = {}
    while True:
        try:
            request = wire.receive(sock)
        except wire.WireError:
            return
        if request.get("reset"):
            names = {"torch": torch, "__builtins__": __builtins__}
            torch.manual_seed(execution.SEED)
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            results = _try_groups(request, names, progress)
        wire.send(sock, {"type": "probed", "results": results})


def _try_groups(request: dict[str, Any], names: dict[str, Any], progress: Progress) -> list[dict[str, Any]]:
    results = []
    wanted = request.get("names") or []
    for number, candidates in enumerate(request.get("groups", [])):
        started = time.perf_counter()
        chosen, errors = -1, []
        bound: list[str] = []
        for index, statement in enumerate(candidates):
            progress.set(number, index)
            before = dict(names)
            try:
                exec(statement, names)
            except BaseException as error:  # whatever a statement raises is an answer, SystemExit included
                errors.append(f"{qualified_name(error)}: {error}"[:_ERROR_CAP])
                names.clear()
                names.update(before)
                continue
            chosen = index
            bound = [name for name, value in names.items() if name not in before or before[name] is not value]
            break
        asked = wanted[number] if number < len(wanted) else []
        facts = {name: describe(names[name]) for name in [*bound, *asked] if name in names and name != "__builtins__"}
        seconds = time.perf_counter() - started
        results.append({"chosen": chosen, "errors": errors, "facts": facts, "seconds": seconds})
    return results


def describe(value: Any) -> dict[str, Any]:
    """What an engine may know of a value."""
    if isinstance(value, torch.Tensor):
        facts = compare.tensor_facts(value) or {}
        return {"kind": "tensor", **facts, "leaf": value.is_leaf, "values": observe.value_words(value)}
    if isinstance(value, torch.nn.Module):
        return {"kind": "module"}
    if isinstance(value, bool | int | float | str):
        return {"kind": type(value).__name__, "text": repr(value)[:80]}
    if isinstance(value, (tuple, list)):
        kind = "tuple" if isinstance(value, tuple) else "list"
        return {"kind": kind, "length": len(value), "items": [describe(item) for item in value[:8]]}
    return {"kind": "other", "type": type(value).__name__}
