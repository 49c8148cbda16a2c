"""Interpreted kernels on the real torch, in the sandbox: what agrees, what is compiled after all, what cannot show."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from fuzzer.examine import execute
from fuzzer.judge import judge
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.verdict import Kind, Verdict
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch

HEAD = "import torch\n\nMETA = {}\n\n\ndef build_inputs():\n    torch.manual_seed(0)\n"

#: Loads and stores of every kind: views, masks, negative and gathered indices, folds, Welford, scatter, in place.
MANY = """    a = torch.randn(7, 9, requires_grad=True)
    b = torch.randint(-7, 7, (5,))
    return a, b, torch.randn(3, 8, 2).permute(2, 0, 1)[:, ::2], torch.randn(6, 4, dtype=torch.bfloat16)


def fn(a, b, c, d):
    e = torch.nn.functional.pad(a, (1, 2), value=0.5)
    f = torch.cat([a, a * 2])[b]
    g = torch.zeros(7).index_add(0, b % 7, a.sum(1)[:5])
    h = torch.var_mean(a, 1)
    i = a.argmax(1), a.amin(0), a.prod(1), (a > 0).any(0), torch.softmax(a, 1)
    c.mul_(2).add_(1)
    j = d.float().exp().to(torch.float16) + d.half().roll(1, 0)
    return e, f, g, h, i, j, c.flip(0)
"""

RELU = "    return (torch.randn(5, 9),)\n\n\ndef fn(a):\n    return torch.relu(a - 0.1)\n"
#: Draws from Inductor's own generator.
DRAWN = "    return (torch.randn(5, 9),)\n\n\ndef fn(a):\n    return (torch.rand_like(a) >= 0) * a\n"
#: torch's function takes its arguments otherwise than Inductor's operation: compiled.
REFUSED = "    return (torch.rand(6),)\n\n\ndef fn(a):\n    return torch.polygamma(2, a)\n"
#: Open in 2.13: without dimensions ``any`` reduces nothing in eager, and all of it in Inductor's lowering.
LOWERED = "    return (torch.ones(2, 3),)\n\n\ndef fn(a):\n    return a.any(dim=())\n"


def program(body: str, **meta: Any) -> Program:
    return Program.parse(HEAD.format(meta) + body)


def test_interpreted_kernels(tmp_path: Path) -> None:
    accuracy = {"cpp.inject_relu_bug_TESTING_ONLY": "accuracy"}
    programs = {
        "forward": program(MANY),
        "backward": program(MANY, mode="backward"),
        "dynamic": program(MANY, mode="dynamic"),
        "drawn": program(DRAWN),
        "refused": program(REFUSED),
        "planted": program(RELU, inductor_config=accuracy),
        "lowered": program(LOWERED),
    }

    async def run() -> tuple[dict[str, Observation], dict[str, tuple[Observation, Verdict]]]:
        worker = Worker(Target(), tmp_path, WorkerOptions(coverage=("native", "python"), fast=True))
        await worker.start()
        try:
            seen = {name: await worker.execute(item, options={"interpret": True}) for name, item in programs.items()}
            whole = {name: await execute(worker, programs[name], interpret=True) for name in ("planted", "lowered")}
            return seen, whole
        finally:
            await worker.stop()

    seen, whole = asyncio.run(run())
    for name in ("forward", "backward", "dynamic"):
        verdict = judge(seen[name], programs[name].meta)
        assert verdict.kind is Kind.PASS, (name, verdict.reason)
        told = seen[name].raw["interpreted"]
        assert told["kernels"] >= 1 and not told["refused"], (name, told)
        assert seen[name].raw["cxx"]["kernels"] == 0
    assert judge(seen["drawn"], {}).kind is Kind.PASS and seen["drawn"].raw["cxx"]["kernels"] == 0
    assert judge(seen["refused"], {}).kind is Kind.PASS
    assert seen["refused"].raw["interpreted"]["refused"] == ["TypeError"]
    assert seen["refused"].raw["cxx"]["kernels"] == 1

    # A fault of the C++ cannot show; one of a lowering does, and is judged again with compiled kernels.
    assert judge(seen["planted"], programs["planted"].meta).kind is Kind.PASS
    assert whole["planted"][1].kind is Kind.PASS and "suspect" not in whole["planted"][0].raw["interpreted"]
    observation, verdict = whole["lowered"]
    assert verdict.kind is Kind.METADATA and observation.raw["interpreted"]["suspect"] == "metadata"
    assert observation.raw["cxx"]["kernels"] == 1


def test_torch_functions_that_only_the_interpreter_calls_are_no_coverage(tmp_path: Path) -> None:
    async def run() -> list[dict[str, dict[str, list[int]]]]:
        found = []
        for number, options in enumerate(({}, {"interpret": True})):
            worker = Worker(Target(), tmp_path / str(number), WorkerOptions(coverage=("native", "python"), fast=True))
            await worker.start()
            try:
                found.append((await worker.execute(program(MANY), options=options)).coverage)
            finally:
                await worker.stop()
        return found

    compiled, interpreted = asyncio.run(run())
    reached = {(library, id_) for library, ids in compiled["native"].items() for id_ in ids}
    more = {(library, id_) for library, ids in interpreted["native"].items() for id_ in ids} - reached
    assert len(more) < 0.02 * len(reached)
    assert not any("sympy/interp" in file and len(lines) > 60 for file, lines in interpreted["python"].items())
