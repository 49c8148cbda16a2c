"""Differences with an innocent explanation, as other fuzzers report them: none may come out as a bug.

Half-precision chains that a cast to integer, round, floor or an extremum's index amplifies; tan near its poles; ties;
eager as the less accurate side.
"""

import asyncio
from pathlib import Path

import pytest

from fuzzer.examine import examine
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch

#: (name, lines of build_inputs, results, lines of fn)
PROGRAMS = {
    "half chain, then floor": ("a = torch.randn(64, 64).half()", "return torch.floor((a * 1.7 + 0.3) * 9.1 - a / 3)"),
    "half chain, then round": ("a = torch.randn(64, 64).half()", "return torch.round(torch.exp(a) * 3.3 + a)"),
    "half chain, then int": ("a = torch.randn(64, 64).half()", "return ((a.sin() * 40 + a) * 1.3).to(torch.int32)"),
    "half chain, then argmin": ("a = torch.randn(64, 64).half()", "return ((a * 0.37 + 1.1) * 0.9 - a).argmin(dim=1)"),
    "half chain, then compare": ("a = torch.randn(64, 64).half()", "return (a * 3.1 / 3.1) == a"),
    "bfloat16 sum, then sign": ("a = torch.randn(64, 64).bfloat16()", "return torch.sign((a - a.mean()).sum(dim=1))"),
    "tan near its poles": ("a = torch.randn(256) + 1.5707", "return torch.tan(torch.tan(a) * 100)"),
    "reciprocal near zero": ("a = torch.randn(256) * 1e-3", "return 1 / (torch.sin(a) - a)"),
    "a tie of extremes": ("a = torch.ones(4, 64)", "return (a * 2).argmax(dim=1), a.sort(dim=1)[1]"),
    "an almost tie": ("a = torch.rand(64).repeat(8, 1)", "return (a.exp().log() + a).argmin(dim=0)"),
    "a long sum in float32": ("a = torch.randn(20000)", "return torch.cumsum(a * 1e4, 0).sum()"),
    "a variance in half": ("a = torch.randn(8, 512).half()", "return torch.var(a * 30, dim=1)"),
    "softmax of a half product": ("a = torch.randn(16, 16).half()", "return torch.softmax(a @ a.t() * 5, -1)"),
}


def program(build: str, body: str) -> Program:
    inputs = f"def build_inputs():\n    torch.manual_seed(0)\n    {build}\n    return (a,)\n"
    return Program.parse(f"import torch\n\n\n{inputs}\n\ndef fn(a):\n    {body}\n", "<innocent>")


def test_innocent_differences_are_not_reported(tmp_path: Path) -> None:
    async def judged() -> dict[str, str]:
        worker = Worker(Target(), tmp_path, WorkerOptions(coverage=()))
        await worker.start()
        try:
            verdicts = {name: (await examine(worker, program(*parts))).verdict for name, parts in PROGRAMS.items()}
        finally:
            await worker.stop()
        return {
            name: f"{verdict.kind.value}: {verdict.reason}"
            for name, verdict in verdicts.items()
            if verdict.is_suspect and not verdict.debatable
        }

    assert not asyncio.run(judged())
