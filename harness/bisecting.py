"""Runs torch's own bisector on a program: which backend, pass, decomposition or lowering brings the fault?

The orchestrator says what counts as the fault (``BisectOptions``); this only measures and passes on what torch answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypedDict

import torch

from harness import execution
from harness.execution import Program, Result


class BisectOptions(TypedDict, total=False):
    """What the fault looks like."""

    expect: str  # "difference" | "exception" | "no exception"
    path: str  # of the leaf that differs
    max_abs: float  # of the difference that was seen; half of it counts as the same
    cause: str  # qualified type of the exception


def bisect(
    program: Program, options: BisectOptions, meta: dict[str, Any], compare: Callable[[Result, Result], list[Any]]
) -> dict[str, Any]:
    """``{"backend", "subsystem", "number", "what", "replay"}``, empty where torch has no bisector or finds nothing."""
    try:
        from torch._inductor.compiler_bisector import CompilerBisector
    except ImportError:  # torch before 2.6
        return {}
    eager = None
    if options.get("expect") == "difference":
        eager = execution.call(program.fn, program.inputs(), meta, program.wants_gradients)

    def good() -> bool:
        torch._dynamo.reset()
        compiled = torch.compile(program.fn, dynamic=True if program.mode == "dynamic" else None)
        try:
            result = execution.call(compiled, program.inputs(), meta, program.wants_gradients)
        except Exception:
            return options.get("expect") != "exception"
        if eager is None:
            return options.get("expect") == "exception"
        return not any(_same(leaf, options) for leaf in compare(eager, result))

    found = CompilerBisector.do_bisect(good)
    if found is None:
        return {}
    replay = [f"TORCH_BISECT_BACKEND={found.backend}"]
    if found.subsystem:
        replay.append(f"TORCH_BISECT_SUBSYSTEM={found.subsystem}")
    if found.bisect_number is not None:
        replay.append(f"TORCH_BISECT_MAX={found.bisect_number}")
    return {
        "backend": str(found.backend),
        "subsystem": str(found.subsystem or ""),
        "number": found.bisect_number if found.bisect_number is not None else -1,
        "what": str(found.debug_info or "")[:500],
        "replay": " ".join(replay),
    }


def _same(leaf: dict[str, Any], options: BisectOptions) -> bool:
    if leaf.get("path") != options.get("path"):
        return False
    if leaf.get("eager") and leaf.get("compiled") and leaf["eager"]["shape"] != leaf["compiled"]["shape"]:
        return True
    if leaf.get("nan_mismatch") or leaf.get("inf_mismatch"):
        return True
    return bool(leaf.get("differing")) and leaf.get("max_abs", 0.0) >= 0.5 * options.get("max_abs", 0.0)
