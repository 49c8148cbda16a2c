"""Ablation: the same program on thinner backends and under options that explain differences away."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from fuzzer.bisect import BACKENDS
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.judge import judge
from fuzzer.program import Program, ProgramError
from fuzzer.verdict import Kind
from fuzzer.worker import Worker

#: Names of the rows that change an option; the others are backends (``fuzzer.bisect.BACKENDS``).
DYNAMIC, CASTS, RANDOM = "dynamic=True", "emulate_precision_casts", "fallback_random"


def variants_of(program: Program) -> dict[str, tuple[Program, dict[str, Any]]]:
    """Name → (program, options of its execution)."""
    found: dict[str, tuple[Program, dict[str, Any]]] = {
        name: (program, {"backend": backend, "observe": False}) for name, backend in BACKENDS
    }
    found[CASTS] = (program, {"inductor_config": {"emulate_precision_casts": True}, "observe": False})
    found[RANDOM] = (program, {"inductor_config": {"fallback_random": True}, "observe": False})
    try:
        view = ProgramView.of(program)
        compile_options = {**view.meta.get("compile", {}), "dynamic": True}
        found[DYNAMIC] = (dataclasses.replace(view, meta={**view.meta, "compile": compile_options}).to_program(), {})
    except (ViewError, ProgramError, TypeError):
        pass
    return found


async def run_variants(
    worker: Worker, program: Program, kind: Kind, enough: Callable[[], bool] = lambda: False
) -> dict[str, str] | None:
    """Name of the variant → kind of its verdict; None when ``enough`` came first, or where each would hang."""
    if kind in (Kind.HANG, Kind.SLOW_COMPILE):
        return None
    seen: dict[str, str] = {}
    for name, (variant, options) in variants_of(program).items():
        if enough():
            return None
        observation = await worker.execute(variant, name, options, coverage=False)
        seen[name] = judge(observation, variant.meta).kind.value
    return seen
