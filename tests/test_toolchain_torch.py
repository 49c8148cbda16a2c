"""The hastened C++ step on the real torch, in the sandbox: what is reused, and that plain stays plain."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fuzzer.judge import judge
from fuzzer.program import Program
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch

#: A small kernel (clang's, where it is installed) and one with a parallel reduction (g++ always: it has OpenMP in it).
TEXT = """import torch


def build_inputs():
    torch.manual_seed(0)
    return torch.randn(5, 9), torch.randn(300, 300)


def fn(a, b):
    a = torch.sin(a) * 2
    torch._dynamo.graph_break()
    return a, (b * b + 1).sum()
"""


def test_kernels_are_built_once_and_results_stay_the_same(tmp_path: Path) -> None:
    async def run() -> tuple[dict[str, Any], list[dict[str, Any]]]:
        worker = Worker(Target(), tmp_path, WorkerOptions(coverage=(), fast=True))
        ready = await worker.start()
        try:
            program, seen = Program.parse(TEXT), []
            for options in ({}, {}, {"plain": True}):
                observation = await worker.execute(program, options=options)
                assert judge(observation, program.meta).kind is Kind.PASS
                seen.append(observation.raw["cxx"])
            return ready, seen
        finally:
            await worker.stop()

    ready, (first, second, plain) = asyncio.run(run())
    assert ready["target"]["isa"], "hastening must not cost the vector instructions"
    assert "kernels kept" in ready["toolchain"]
    assert first["kernels"] >= 1 and first["reused"] == 0 and first["fallbacks"] == 0
    assert first["clang"] == ("where no OpenMP is" in ready["toolchain"])
    assert second["kernels"] == second["reused"] == first["kernels"]
    assert plain["kernels"] == first["kernels"] and plain["reused"] == 0
