"""The whole derivation: every source of candidates, measured in forked children, in one stream of records."""

from __future__ import annotations

import functools
import gc
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from harness.catalogue import extra, isolate, opinfo, schemas
from harness.catalogue.measure import Candidate, measure
from harness.catalogue.record import seed

#: Seconds between two lines of progress.
_EVERY = 3.0


def derive(device: str, progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    """Records of all operators. Changes ``sys.modules`` and torch's settings: call it in a process of its own."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    if device != "cpu":
        torch.set_default_device(device)
    missing = opinfo.install_stand_ins()
    if missing:
        progress(f"catalogue: stand-ins for {', '.join(missing)}")
    seen: set[str] = set()
    listed = opinfo.operator_jobs(device) + opinfo.module_jobs(device)
    fixed = [functools.partial(_give, candidate) for candidate in extra.candidates()]
    for record in _measured("operators", listed + fixed, progress):
        seen |= _covered(record)
        yield record
    yield from _measured("schemas", schemas.jobs(seen), progress)


def _give(candidate: Candidate) -> Candidate:
    return candidate


def _covered(record: dict[str, Any]) -> set[str]:
    """Names of aten packets that need no further record: dispatched ones, and the operator's own."""
    name = record["name"].removeprefix("nn.functional.").strip("_")
    return {*(packet.removeprefix("aten.") for packet in record["aten"]), name, name.replace(".", "_")}


def _measured(what: str, jobs: list[Any], progress: Callable[[str], None]) -> Iterator[dict[str, Any]]:
    gc.collect()
    gc.freeze()  # children share the parent's pages as long as no collection touches them
    kept, told = 0, time.monotonic()
    for index, record, why in isolate.run_all([functools.partial(_job, job) for job in jobs]):
        if record is None:
            progress(f"catalogue: dropped {_label(jobs[index])}: {why}")
        else:
            kept += 1
            yield record
        if time.monotonic() - told > _EVERY or index + 1 == len(jobs):
            told = time.monotonic()
            progress(f"catalogue: {what} {index + 1}/{len(jobs)}, {kept} kept")


def _label(job: Any) -> str:
    first = job.args[0]
    return str(getattr(first, "full_name", None) or getattr(first, "name", None) or first)


def _job(make: Callable[[], Candidate]) -> dict[str, Any]:
    seed(zlib.crc32(_label(make).encode()))
    return measure(make())
