"""What start-up alone covers: a program that any campaign runs first, measured once on a fresh fork server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

from fuzzer.fleet import CALIBRATION
from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.program import Program
from fuzzer.worker import Target, Worker, WorkerOptions

_DOMAINS = ("native", "python")


def measure(target: Target, folder: Path, progress: Callable[[str], None] = lambda line: None) -> tuple[Coverage, str]:
    """Start a fork server below ``folder``, run what a campaign runs before anything counts, and stop it (about 20 s).

    Returns what was reached, and the version of the target's torch.

    Raises:
        TargetRefused: the target cannot start.
    """
    return asyncio.run(_measure(target, folder, progress))


async def _measure(target: Target, folder: Path, progress: Callable[[str], None]) -> tuple[Coverage, str]:
    worker = Worker(target, folder / "baseline", WorkerOptions(_DOMAINS))
    known = KnownCoverage()
    try:
        ready = await worker.start(progress)
        for _ in range(2):
            known.absorb((await worker.execute(Program.parse(CALIBRATION, "<calibration>"))).coverage)
    finally:
        await worker.stop()
    return known.as_delta(), str(ready.get("target", {}).get("torch", ""))
