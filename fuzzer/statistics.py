"""The numbers of a campaign, as the table in ``fuzzer.store.stats`` names them."""

from __future__ import annotations

import os
import shutil
import time
from typing import TYPE_CHECKING

import psutil

if TYPE_CHECKING:
    from fuzzer.campaign import Campaign

Value = int | float | str


def statistics(campaign: Campaign) -> dict[str, Value]:
    """All rows, at this moment."""
    state, now = campaign.state, time.time()
    counters = state.counters
    run_time = campaign.elapsed
    this_run = max(1e-9, time.monotonic() - campaign.started)
    done = counters.runs - campaign.runs_before
    totals = state.known.totals
    findings = counters.findings
    target = campaign.fleet.workers[0].ready.get("target", {}) if campaign.fleet.workers else {}
    return {
        "start_time": int(now - this_run),
        "last_update": int(now),
        "run_time": int(run_time),
        "fuzzer_pid": os.getpid(),
        "execs_done": counters.runs,
        "execs_per_sec": round(counters.runs / max(run_time, 1e-9), 3),
        "corpus_count": len(state.corpus),
        "corpus_found": len(state.corpus),
        "saved_crashes": sum(findings.get(name, 0) for name in ("confirmed", "debatable", "known")),
        "saved_hangs": counters.kinds.get("hang", 0),
        "last_find": int(now - run_time + counters.last_find) if counters.last_find else 0,
        "last_crash": int(now - run_time + counters.last_crash) if counters.last_crash else 0,
        "valid_rate": round(state.valid_rate, 4),
        "refused_as_meant": counters.as_meant,
        "conformity": round(state.conformity, 4),
        "programs_per_hour": round(3600 * done / this_run, 1),
        "operators_executed": len(state.executed),
        **{f"coverage_{name}": totals.get(name, 0) for name in ("native", "python", "events")},
        "coverage_pairs": state.pairs.total,
        **{f"findings_{name}": findings.get(name, 0) for name in ("confirmed", "debatable", "flaky", "known")},
        "suspects_waiting": sum(bucket.state == "new" for bucket in state.buckets.values()),
        "harness_errors": counters.harness_errors,
        "kernels": counters.kernels,
        "kernels_reused": counters.kernels_reused,
        "kernel_cpu": round(counters.kernel_seconds, 1),
        "interpreted": counters.interpreted,
        "interpreted_withdrawn": counters.interpreted_withdrawn,
        "toolchain_audits": counters.audits,
        "toolchain_differences": counters.audits_differing,
        "workers_alive": sum(worker.alive for worker in campaign.fleet.workers),
        "disk_free": shutil.disk_usage(campaign.directory.path).free,
        "rss": psutil.Process().memory_info().rss,
        "discovery_probability": round(state.schedule.plateau.estimate.probability, 4),
        "target_torch": str(target.get("torch", "")),
        "stop_reason": campaign.stop_reason,
        **(campaign.llm.statistics() if campaign.llm is not None else {}),
    }
