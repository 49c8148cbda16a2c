"""What start-up alone covers: a program that any campaign runs first, measured once on a fresh fork server."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import msgpack

from fuzzer.fleet import CALIBRATION
from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.program import Program
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory
from fuzzer.worker import Target, Worker, WorkerOptions

_FILE = "baseline.msgpack"
_DOMAINS = ("native", "python")


def stored(directory: CampaignDirectory, torch: str) -> Coverage | None:
    """The baseline that an earlier call kept in the campaign's ``coverage/``; None without one for this torch."""
    try:
        data = msgpack.unpackb((directory.coverage / _FILE).read_bytes(), raw=False, strict_map_key=False)
        if data["torch"] == torch:
            return KnownCoverage.from_map(data["known"]).as_delta()
    except (OSError, ValueError, KeyError, TypeError, msgpack.UnpackException):
        pass  # absent or damaged: it is measured again
    return None


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


def keep(directory: CampaignDirectory, torch: str, coverage: Coverage) -> None:
    """Store a baseline for later calls; a directory that may not be written to stays as it is."""
    known = KnownCoverage()
    known.absorb(coverage)
    with contextlib.suppress(OSError):
        directory.coverage.mkdir(exist_ok=True)
        data = msgpack.packb({"torch": torch, "known": known.to_map()}, use_bin_type=True)
        atomic.write_bytes(directory.coverage / _FILE, data)
