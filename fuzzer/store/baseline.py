"""What start-up alone covers, kept in the campaign's ``coverage/``: written when its first worker starts."""

from __future__ import annotations

import contextlib

import msgpack

from fuzzer.policy.known_coverage import Coverage, KnownCoverage
from fuzzer.store import atomic
from fuzzer.store.directory import CampaignDirectory

_FILE = "baseline.msgpack"


def stored(directory: CampaignDirectory, torch: str) -> Coverage | None:
    """The baseline that an earlier call kept in the campaign's ``coverage/``; None without one for this torch."""
    try:
        data = msgpack.unpackb((directory.coverage / _FILE).read_bytes(), raw=False, strict_map_key=False)
        if data["torch"] == torch:
            return KnownCoverage.from_map(data["known"]).as_delta()
    except (OSError, ValueError, KeyError, TypeError, msgpack.UnpackException):
        pass  # absent or damaged: it is measured again
    return None


def keep(directory: CampaignDirectory, torch: str, coverage: Coverage) -> None:
    """Store a baseline for later calls; a directory that may not be written to stays as it is."""
    known = KnownCoverage()
    known.absorb(coverage)
    with contextlib.suppress(OSError):
        directory.coverage.mkdir(exist_ok=True)
        data = msgpack.packb({"torch": torch, "known": known.to_map()}, use_bin_type=True)
        atomic.write_bytes(directory.coverage / _FILE, data)
