"""One program judged by several runs, on the fake harness."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from fuzzer.examine import execute
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, Worker, WorkerOptions


def program(do: str) -> Program:
    body = "def build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a.relu()\n"
    return Program.parse(f"import torch\n\nMETA = {{'fake': {{'do': {do!r}}}}}\n\n\n{body}")


def executed(
    folder: Path, do: str, told: dict[str, Any] | None = None
) -> tuple[Observation, Verdict, list[dict[str, bool]]]:
    """What ``execute`` tells of an interpreted program, and the options of its executions.

    ``told``: what the harness says of its interpreter.
    """
    asked: list[dict[str, bool]] = []

    async def run() -> tuple[Observation, Verdict]:
        worker = Worker(Target(fake=True), folder / "worker", WorkerOptions(coverage=()))
        whole = worker.execute

        async def watched(program, variant="", options=None, **more):  # type: ignore[no-untyped-def]
            asked.append(options or {})
            seen = await whole(program, variant, options, **more)
            return replace(seen, raw={**seen.raw, "interpreted": told}) if told else seen

        worker.execute = watched  # type: ignore[method-assign]
        try:
            await worker.start()
            return await execute(worker, program(do), interpret=True)
        finally:
            await worker.stop()

    return *asyncio.run(run()), asked


@pytest.mark.parametrize("kind", [Kind.WRONG_VALUE, Kind.COMPILE_ERROR])
def test_what_looks_wrong_interpreted_is_judged_by_compiled_kernels(tmp_path: Path, kind: Kind) -> None:
    observation, verdict, asked = executed(tmp_path, kind.value)
    assert asked == [{"interpret": True}, {}]
    assert verdict.kind is kind
    assert {"suspect": kind.value, "cleared": False}.items() <= observation.raw["interpreted"].items()


def test_a_fault_in_which_no_interpreted_kernel_had_a_part_is_judged_as_it_is(tmp_path: Path) -> None:
    told = {"kernels": 0, "cpu": 0.0, "refused": []}
    observation, verdict, asked = executed(tmp_path, "compile_error", told)
    assert asked == [{"interpret": True}] and verdict.kind is Kind.COMPILE_ERROR
    assert observation.raw["interpreted"] == told


@pytest.mark.parametrize("do", ["pass", "invalid"])
def test_what_looks_right_is_not_compiled(tmp_path: Path, do: str) -> None:
    observation, verdict, asked = executed(tmp_path, do)
    assert asked == [{"interpret": True}] and not verdict.is_suspect
    assert "suspect" not in observation.raw.get("interpreted", {})
