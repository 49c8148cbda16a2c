"""Where does it fail? The first failing backend, and what torch's own bisector names."""

from __future__ import annotations

from typing import Any

from fuzzer.examine import same_fault
from fuzzer.judge import judge
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Worker

#: From the thinnest to the whole compiler, with the names that reports use: Dynamo alone; AOTAutograd with fake
#: tensors and functionalisation; decompositions and the partitioner; Inductor.
BACKENDS: tuple[tuple[str, str], ...] = (
    ("dynamo", "eager"),
    ("aot_eager", "aot_eager"),
    ("decomp", "aot_eager_decomp_partition"),
    ("inductor", "inductor"),
)


async def first_failing_backend(worker: Worker, program: Program, verdict: Verdict) -> str:
    """The first of ``dynamo``, ``aot_eager``, ``decomp``, ``inductor`` that shows a fault; ``eager`` where eager does.

    Any fault counts, not only one of the same kind: a thin backend often fails in another way for the same reason.
    """
    if verdict.kind in (Kind.EAGER_CRASH, Kind.EAGER_INTERNAL_ASSERT) or verdict.stage == "eager":
        return "eager"
    for name, backend in BACKENDS[:-1]:
        options = {"backend": backend, "observe": False}
        seen = await worker.execute(program, f"backend {backend}", options, coverage=False)
        judged = judge(seen, program.meta)
        if judged.is_suspect and (same_fault(verdict, judged) or _alike(verdict, judged)):
            return name
    return BACKENDS[-1][0]


async def torch_bisect(worker: Worker, program: Program, verdict: Verdict) -> dict[str, Any]:
    """What torch's own bisector names (backend, subsystem, the operator or pass), with the line that replays it.

    Empty for crashes and hangs, which would take the bisector with them, and where it finds nothing.
    """
    leaf: dict[str, Any] = verdict.details.get("leaf", {})
    if verdict.kind in _SILENT and leaf:
        wanted = {"expect": "difference", "path": leaf["path"], "max_abs": leaf.get("max_abs", 0.0)}
    elif verdict.kind in (Kind.COMPILE_ERROR, Kind.EXTRA_CHECK):
        wanted = {"expect": "exception"}
    elif verdict.kind is Kind.MISSING_CHECK:
        wanted = {"expect": "no exception"}
    else:
        return {}
    limits = {"stage_seconds": 180.0, "total_seconds": 200.0}
    seen = await worker.execute(program, "bisect", {"bisect": wanted}, coverage=False, limits=limits)
    return dict(seen.raw.get("bisect") or {})


_SILENT = frozenset({Kind.WRONG_VALUE, Kind.WRONG_GRADIENT, Kind.WRONG_MUTATION, Kind.METADATA})


def _alike(one: Verdict, other: Verdict) -> bool:
    """Silent faults may show as another silent kind, errors as another error."""
    errors = {Kind.COMPILE_ERROR, Kind.EXTRA_CHECK, Kind.HANG, Kind.SLOW_COMPILE, Kind.CRASH}
    return {one.kind, other.kind} <= _SILENT or {one.kind, other.kind} <= errors or one.kind is other.kind
