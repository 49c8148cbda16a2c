"""``eddy check``: is everything in place? Planted faults must be seen, a clean program must pass."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.cli import common
from fuzzer.examine import execute
from fuzzer.exits import Exit
from fuzzer.program import Program
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

_PROGRAM = """import torch

META = {{"mode": "forward"}}


def build_inputs():
    torch.manual_seed(0)
    return (torch.randn(8, 16),)


def fn(a):
{body}
"""


def _program(body: str) -> Program:
    lines = "\n".join(f"    {line}" for line in body.splitlines())
    return Program.parse(_PROGRAM.format(body=lines), "<check>")


#: (what must happen, program, planted bug, expected kinds)
_PLANTED: tuple[tuple[str, Program, str, tuple[Kind, ...]], ...] = (
    ("clean program passes", _program("return torch.sin(a).sum(dim=1)"), "", (Kind.PASS,)),
    ("invalid program is told", _program("return a @ a"), "", (Kind.INVALID,)),
    ("planted mismatch in relu is seen", _program("return a.relu() + 1"), "relu", (Kind.WRONG_VALUE,)),
    ("planted mismatch in log1p is seen", _program("return torch.log1p(a.abs())"), "log1p", (Kind.WRONG_VALUE,)),
    ("planted crash is seen", _program("torch.os.abort()"), "", (Kind.EAGER_CRASH,)),
    ("hang is ended", _program("while True:\n    pass"), "", (Kind.INVALID, Kind.HANG)),
)  # fmt: skip


#: What it means that a protection is open, and what helps.
_OPEN = {
    "network": "programs can reach the network; allow user namespaces, or run in a container without network",
    "processes": "programs can see, signal and outlive other processes of yours; allow user and process namespaces",
    "files": "programs can write to all your files; use a kernel with Landlock (5.13), or a user of its own",
}


@dataclass(frozen=True)
class Check:
    """One line of the report. ``required`` checks decide the exit code."""

    name: str
    ok: bool
    detail: str
    required: bool = True


def add(parsers: Any) -> None:
    parser = parsers.add_parser("check", help="self-test: compiler, target, protection, coverage, planted faults")
    common.add_target_options(parser)
    parser.set_defaults(run=run)


def run(args: argparse.Namespace) -> int:
    common.require_compiler()
    checks = asyncio.run(_checks(common.targets(args)[0]))
    ok = all(check.ok for check in checks if check.required)
    if args.json:
        rows = [{"name": check.name, "ok": check.ok, "detail": check.detail} for check in checks]
        print(json.dumps({"ok": ok, "checks": rows}))
    else:
        for check in checks:
            mark = "ok  " if check.ok else "FAIL" if check.required else "none"
            print(f"{mark} {check.name}: {check.detail}")
    return Exit.DONE if ok else Exit.TARGET


async def _checks(target: Target) -> list[Check]:
    with common.scratch_folder() as folder:
        checks = await _healthy(target, folder)
        checks += await _planted(target, folder)
    return checks


async def _healthy(target: Target, folder: Path) -> list[Check]:
    limits = {"eager_seconds": 3.0, "stage_seconds": 60.0}
    worker = Worker(target, folder / "healthy", WorkerOptions(limits=limits, fast=True), cache=folder / "cache")
    try:
        ready = await worker.start(lambda line: print(f"… {line}", file=sys.stderr))
        facts, protection = ready["target"], ready["protection"]
        checks = [
            Check("target", True, f"torch {facts['torch']}, Python {facts['python']}, {facts['executable']}"),
            Check("compiler", bool(facts["compiler"]), facts["compiler"] or "no answer from the C++ compiler"),
            Check("vector instructions", bool(facts["isa"]), facts["isa"] or "none: all code would be scalar"),
            Check("C++ step", ready["toolchain"] != "plain", ready["toolchain"], required=False),
            Check("threads", ready["threads"] == 1, f"{ready['threads']} in the fork server (must be 1)"),
            *(_protection(name, how) for name, how in protection.items()),
            Check("protection: process count", *_process_count(), required=False),
            *(Check(f"coverage: {name}", row["available"], row["why"] or f"{row['total']} ids", required=False)
              for name, row in ready["coverage"].items()),
        ]  # fmt: skip
        for name, program, plant, kinds in _PLANTED:
            if not plant:
                checks.append(await _expect(worker, name, program, kinds))
    finally:
        await worker.stop()
    return checks


def _protection(name: str, how: str) -> Check:
    remedy = f"; {_OPEN[name]}" if how.startswith("open") and name in _OPEN else ""
    return Check(f"protection: {name}", not how.startswith("open"), how + remedy, required=False)


def _process_count() -> tuple[bool, str]:
    """Whether the kernel lists the children of a process: without it, forks without end are met by time limits only."""
    listed = Path(f"/proc/self/task/{os.getpid()}/children").exists()
    return listed, "limited" if listed else "unlimited: this kernel does not list children (CONFIG_PROC_CHILDREN)"


async def _planted(target: Target, folder: Path) -> list[Check]:
    checks = []
    for plant in ("relu", "log1p"):
        worker = Worker(target, folder / plant, WorkerOptions((), plant), cache=folder / "cache")
        try:
            await worker.start()
            for name, program, planted, kinds in _PLANTED:
                if planted == plant:
                    checks.append(await _expect(worker, name, program, kinds))
        finally:
            await worker.stop()
    return checks


async def _expect(worker: Worker, name: str, program: Program, kinds: tuple[Kind, ...]) -> Check:
    _seen, verdict = await execute(worker, program)
    wanted = " or ".join(kind.value for kind in kinds)
    return Check(name, verdict.kind in kinds, f"{verdict.kind.value} {verdict.reason}".strip() + f" (wanted {wanted})")
