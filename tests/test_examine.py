"""One program judged by several runs, on the fake harness."""

import asyncio
from pathlib import Path

import pytest

from fuzzer.examine import execute
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, Worker, WorkerOptions


def program(do: str) -> Program:
    body = "def build_inputs():\n    return (torch.ones(2),)\n\n\ndef fn(a):\n    return a.relu()\n"
    return Program.parse(f"import torch\n\nMETA = {{'fake': {{'do': {do!r}}}}}\n\n\n{body}")


def executed(folder: Path, do: str) -> tuple[Observation, Verdict, list[dict[str, bool]]]:
    """What ``execute`` tells of an interpreted program, and the options of its executions."""
    asked: list[dict[str, bool]] = []

    async def run() -> tuple[Observation, Verdict]:
        worker = Worker(Target(fake=True), folder / "worker", WorkerOptions(coverage=()))
        whole = worker.execute

        async def watched(program, variant="", options=None, **more):  # type: ignore[no-untyped-def]
            asked.append(options or {})
            return await whole(program, variant, options, **more)

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
    assert verdict.kind is kind and observation.raw["interpreted"] == {"suspect": kind.value}


@pytest.mark.parametrize("do", ["pass", "invalid"])
def test_what_looks_right_is_not_compiled(tmp_path: Path, do: str) -> None:
    observation, verdict, asked = executed(tmp_path, do)
    assert asked == [{"interpret": True}] and not verdict.is_suspect
    assert "suspect" not in observation.raw.get("interpreted", {})
