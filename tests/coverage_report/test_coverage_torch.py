"""Basic blocks of torch's own libraries, and an instrumented library that a program loads, through a fork server."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from small_library import build_library, needs_compiler

from fuzzer.coverage_blocks import find_blocks
from fuzzer.coverage_report import baseline, target_files
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = [pytest.mark.torch, needs_compiler]

INSTRUMENTED = (
    "static int x;\n__attribute__((constructor)) static void begin() {\n    x = 1;\n}\nint never() { return x; }\n"
)

PROGRAM = """import torch

META = {{"mode": "forward"}}


def build_inputs():
    torch.ops.load_library({library!r})
    return (torch.arange(12.0).reshape(3, 4),)


def fn(a):
    return a.{call}
"""


@pytest.mark.skipif(not shutil.which("gcov"), reason="needs gcov")
def test_blocks_and_counters_through_a_fork_server(tmp_path: Path) -> None:
    pytest.importorskip("capstone")
    library = build_library(tmp_path / "lib" / "libcounted.so", INSTRUMENTED, "--coverage")

    def program(call: str) -> Program:
        return Program.parse(PROGRAM.format(library=str(library), call=call))

    async def scenario() -> list[dict[str, Any]]:
        worker = Worker(Target(), tmp_path / "w", WorkerOptions(("native", "gcov"), warm=False))
        ready = await worker.start()
        try:
            only = {"only_eager": True}
            first = await worker.execute(program("softmax(0)"), options=only)
            assert first.stage("eager") is not None and first.stage("build").fault is None, first.log
            files = target_files.find(sys.executable)
            path = files.library("libtorch_cpu")
            assert path is not None and files.version == ready["target"]["torch"]
            blocks = find_blocks(path, first.coverage["native"]["libtorch_cpu"])
            added = await worker.arm({"libtorch_cpu": blocks.addresses, "libnone": [1]})
            assert added == {"libtorch_cpu": len(blocks.addresses)} and len(blocks.addresses) > 1000
            second = await worker.execute(program("softmax(0)"), options=only)
            third = await worker.execute(program("softmax(0)"), options=only)
            other = await worker.execute(program("double().softmax(1)"), options=only)
            assert set(second.coverage["native"]["libtorch_cpu"]) & set(blocks.addresses)
            assert set(other.coverage["native"]["libtorch_cpu"]) & set(blocks.addresses)
            return [ready["coverage"], first.coverage, second.coverage, third.coverage]
        finally:
            await worker.stop()

    facts, first, second, third = asyncio.run(scenario())
    assert facts["gcov"]["available"] and facts["native"]["available"]
    assert first["gcov"] == {str(library.with_suffix(".cpp")): [2, 3, 4]}
    assert "gcov" not in second and "gcov" not in third
    assert len(third.get("native", {}).get("libtorch_cpu", [])) < 20


def test_start_up_reaches_much_of_the_compiler(tmp_path: Path) -> None:
    coverage, version = baseline.measure(Target(), tmp_path)
    assert version == target_files.find(sys.executable).version
    assert len(coverage["python"]["torch/_dynamo/symbolic_convert.py"]) > 100
    assert len(coverage["native"]["libtorch_cpu"]) > 500
