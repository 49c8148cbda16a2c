"""A mixed campaign whose model dies and comes back: does it run to its end, and what does the model cost it?

    python -m benchmarks.llm_outage --minutes 20 [--workers 2] [--server-python PYTHON] [--gguf FILE] [--keep DIR]

A small model is served on loopback, on one thread, niced. The campaign starts with it; at a quarter of the time the
server is killed (-9), at half of it another one is started on the same port. Then the same minutes without a model,
same seed and workers; with ``--at-once`` beside it, each of the two with one worker on a core of its own, the model on
the first one's. Reported: programs an hour of the template engine (with its mutations) in both, what was asked
and answered before, during and after the outage, the longest pause between programs, and whether ledger, log and tries
agree. ``ratio`` compares the template engine's programs, those that the model's displaced left out; ``ratio_of_all``
all programs; ``ratio_untriaged`` all programs by the time that no suspect took, which chance deals out very unequally.
``model_share`` is the part of the campaign's processor time that the model took: since no worker waits for it, that is
what it costs, without the noise of two campaigns; with ``--mixed-only`` the second campaign is left out.

The server needs xllamacpp and a GGUF file (extra ``llm-local``, docs/llm.md), in this interpreter or in another one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from benchmarks import results
from benchmarks.cores import bound
from fuzzer.llm.jsonl import read_json_lines
from fuzzer.llm.local import MODEL
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal
from fuzzer.store.stats import Events, read_status

_READY_SECONDS = 180.0  # of a server on a busy machine
_DRAIN_SECONDS = 120.0  # of a campaign past its time
_BUDGET = "100M"


def server(python: str, port: int, gguf: str, log: Path, core: int | None = None) -> subprocess.Popen[str]:
    """A model on ``port``, ready. Raises ``RuntimeError`` where it does not come up."""
    command = [*bound(core), python, "-m", "fuzzer.llm.local", "--port", str(port), *(["--gguf", gguf] if gguf else [])]
    with open(log, "a", encoding="utf-8") as stream:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, stdin=subprocess.DEVNULL, text=True)
    assert process.stdout is not None
    if not process.stdout.readline().startswith("http"):
        process.kill()
        raise RuntimeError(f"no model on port {port}: {log.read_text('utf-8', 'replace').strip()[-300:]}")
    return process


def free_port() -> int:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return int(sock.getsockname()[1])


@contextmanager
def campaign(
    path: Path, minutes: float, options: list[str], core: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """A running ``eddy fuzz``; killed on the way out if it has not ended."""
    command = [
        *bound(core),
        sys.executable,
        "-m",
        "fuzzer",
        "fuzz",
        str(path),
        "--max-time",
        f"{60 * minutes:g}s",
        "--json",
        *options,
    ]
    with open(path.with_suffix(".log"), "ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()


def ended(process: subprocess.Popen[bytes], path: Path, seconds: float) -> dict[str, Any]:
    """Status of the campaign after its own end. Raises ``AssertionError`` when it had none."""
    code = process.wait(seconds + _DRAIN_SECONDS)
    status = read_status(CampaignDirectory.open(path))
    assert code == 0, f"exit status {code}: {path.with_suffix('.log').read_text('utf-8', 'replace')[-500:]}"
    assert status["stop_reason"] == "max-time", status["stop_reason"]
    assert status["harness_errors"] == 0, f"{status['harness_errors']} harness errors"
    return status


def with_outage(path: Path, args: argparse.Namespace, core: int | None) -> dict[str, Any]:
    """The mixed campaign. Returns its status, and ``down`` and ``up``, seconds since 1970."""
    log, port = path.parent / "server.log", args.port or free_port()
    model = server(args.server_python, port, args.gguf, log, core)
    asked = ["--engine", "mixed", "--llm-endpoint", f"http://127.0.0.1:{port}/v1", "--llm-model", MODEL]
    asked += ["--llm-budget", _BUDGET, "--llm-form", "steps"]
    seconds = 60.0 * args.minutes
    try:
        with campaign(path, args.minutes, [*common(args), *asked], core) as process:
            wait_for_programs(path, process)
            sleep_until(time.monotonic() + seconds / 4, process)
            used = processor_seconds(model)
            model.send_signal(signal.SIGKILL)
            model.wait()
            down = time.time()
            sleep_until(time.monotonic() + seconds / 4, process)
            model = server(args.server_python, port, args.gguf, log, core)
            up = time.time()
            status = ended(process, path, seconds)
            used += processor_seconds(model)
            return {**status, "down": down, "up": up, "model_cpu": used}
    finally:
        model.kill()
        model.wait()


def processor_seconds(process: subprocess.Popen[str]) -> float:
    times = psutil.Process(process.pid).cpu_times()
    return float(times.user + times.system)


def common(args: argparse.Namespace) -> list[str]:
    target = ["--target", args.target] if args.target else []
    return ["--seed", str(args.seed), "--workers", str(args.workers), *target]


def wait_for_programs(path: Path, process: subprocess.Popen[bytes]) -> None:
    """Until the campaign is under way: starting up says nothing about outages."""
    journal, deadline = CampaignDirectory(path, {}).journal, time.monotonic() + _READY_SECONDS
    while not journal.exists() or not any(record["t"] == "run" for _offset, record in read_journal(journal)):
        assert time.monotonic() < deadline, "no program in time"
        sleep_until(time.monotonic() + 0.5, process)


def sleep_until(when: float, process: subprocess.Popen[bytes]) -> None:
    while time.monotonic() < when:
        assert process.poll() is None, f"the campaign ended early, exit status {process.returncode}"
        time.sleep(0.2)


# -- what was lost, and what it cost ----------------------------------------------------------------------------------


def writers(path: Path) -> tuple[Counter[str], Counter[str]]:
    """Programs that ran, and valid ones, by engine."""
    ran: Counter[str] = Counter()
    valid: Counter[str] = Counter()
    for _offset, record in read_journal(CampaignDirectory.open(path).journal):
        if record["t"] == "run":
            engine = str(record["outcome"]["plan"]["engine"])
            ran[engine] += 1
            valid[engine] += bool(record["valid"])
    return ran, valid


def check_books(path: Path) -> dict[str, int]:
    """Ledger, log, tries and journal tell one story. Raises ``AssertionError`` where they do not."""
    folder = CampaignDirectory.open(path).llm
    reserved, settled = set(), set()
    tokens = 0
    for line in lines(folder / "ledger.jsonl"):
        if "reserve" in line:
            reserved.add(line["reserve"])
        else:
            settled.add(line["settle"])
            tokens += line["in"] + line["out"]
    assert reserved == settled, f"{len(reserved - settled)} calls were never settled"
    exchanges = lines(folder / "exchanges.jsonl")
    outcomes = Counter("answer" if "answer" in line else line["fault"]["kind"] for line in exchanges)
    tries = Counter((line["stage"], line["verdict"]) for line in lines(folder / "tries.jsonl"))
    fit = tries[("static", "fit")]
    used = sum(count for (stage, _verdict), count in tries.items() if stage in ("probe", "eager"))
    assert used <= fit, "more programs than answers"
    return {"calls": len(settled), "tokens": tokens, "answers": outcomes.pop("answer", 0), "faults": outcomes.total(),
            "fit": fit, "built_from_steps": tries[("probe", "built")]}  # fmt: skip


def by_phase(path: Path, down: float, up: float) -> dict[str, dict[str, int]]:
    """Answers and faults before, during and after the outage."""
    found: dict[str, Counter[str]] = {"before": Counter(), "during": Counter(), "after": Counter()}
    for line in lines(CampaignDirectory.open(path).llm / "exchanges.jsonl"):
        phase = "before" if line["at"] < down else "during" if line["at"] < up else "after"
        found[phase]["answers" if "answer" in line else "faults"] += 1
    return {phase: dict(counter) for phase, counter in found.items()}


def lines(path: Path) -> list[dict[str, Any]]:
    """Lines of a log of the model; none where nothing was logged."""
    return list(read_json_lines(path)) if path.exists() else []


def events_of(path: Path) -> list[str]:
    """What the campaign told about its model."""
    events = Events(CampaignDirectory.open(path).events).read()
    return [str(event["text"]) for event in events if event["kind"] in ("warning", "llm")]


def longest_pause(path: Path) -> float:
    """Longest time between two programs of the campaign, seconds: a worker that waited for a model would show here."""
    journal = read_journal(CampaignDirectory.open(path).journal)
    at = [float(record["at"]) for _offset, record in journal if record["t"] == "run"]
    return max((later - earlier for earlier, later in itertools.pairwise(at)), default=0.0)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.llm_outage", description=__doc__.split("\n")[0])
    parser.add_argument("--minutes", type=float, default=20.0, help="of each of the two campaigns (default: 20)")
    parser.add_argument("--workers", type=int, default=max(1, min(8, os.cpu_count() or 1)))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", default="", help="as of eddy fuzz (default: this interpreter)")
    parser.add_argument("--server-python", default=sys.executable, metavar="PYTHON", help="that has xllamacpp")
    parser.add_argument("--at-once", action="store_true", help="both campaigns side by side, one worker and core each")
    parser.add_argument("--mixed-only", action="store_true", help="no campaign without a model to compare with")
    parser.add_argument("--gguf", default="", metavar="FILE")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--keep", metavar="DIR", help="where the campaigns stay (default: a temporary folder, removed)")
    args = parser.parse_args(argv)
    args.workers = 1 if args.at_once else args.workers
    with tempfile.TemporaryDirectory(prefix="eddy-llm-") as temporary:
        folder = Path(args.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        numbers = measure(folder, args)
    command = f"python -m benchmarks.llm_outage --minutes {args.minutes:g} --workers {args.workers} --seed {args.seed}"
    command += (" --at-once" if args.at_once else "") + (" --mixed-only" if args.mixed_only else "")
    print(results.table(numbers.pop("table")))
    print(json.dumps({name: value for name, value in numbers.items() if name != "events"}, indent=1))
    for line in numbers["events"]:
        print(f"  {line}")
    name = "llm_outage_fake" if args.target == "fake:" else "llm_outage"
    print(f"→ {results.save(name, command, numbers)}")
    silent = [phase for phase in ("before", "after") if not numbers["exchanges"][phase].get("answers")]
    if silent:
        print(f"no answer {' and '.join(silent)} the outage: more --minutes or a quieter machine", file=sys.stderr)
        return 1
    return 0


def both(mixed: Path, plain: Path, args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Status of the campaign with a model, and of the one without: one after the other, or side by side."""

    def without(core: int | None) -> dict[str, Any]:
        with campaign(plain, args.minutes, common(args), core) as process:
            return ended(process, plain, 60.0 * args.minutes)

    if args.mixed_only:
        return with_outage(mixed, args, min(os.sched_getaffinity(0)) if args.at_once else None), None
    if not args.at_once:
        return with_outage(mixed, args, None), without(None)
    first, *_others, last = sorted(os.sched_getaffinity(0))
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(without, last)
        return with_outage(mixed, args, first), other.result()


def measure(folder: Path, args: argparse.Namespace) -> dict[str, Any]:
    mixed, plain = folder / "mixed", folder / "template"
    seen, alone = both(mixed, plain, args)
    rows: list[list[Any]] = [
        ["campaign", "programs", "template/h", "all/h", "untriaged/h", "model", "valid", "longest pause s"]
    ]
    rates, totals, untriaged = {}, {}, {}
    for name, path, status in (("mixed", mixed, seen), ("template", plain, alone)):
        if status is None:
            continue
        ran, valid = writers(path)
        hours = max(float(status["run_time"]), 1.0) / 3600.0
        by_model = ran.pop("llm", 0)
        total = ran.total() + by_model
        rates[name], totals[name] = ran.total() / hours, total / hours
        untriaged[name] = results.untriaged_pace(path, args.workers)
        share = valid.total() / max(1, total)
        rows.append([name, total, rates[name], totals[name], untriaged[name], by_model, share, longest_pause(path)])

    def ratio(numbers: dict[str, float]) -> float | None:
        return round(numbers["mixed"] / max(numbers["template"], 1e-9), 3) if "template" in numbers else None

    return {
        "minutes": args.minutes,
        "template_rate_mixed": round(rates["mixed"], 1),
        "template_rate_alone": round(rates["template"], 1) if "template" in rates else None,
        "ratio": ratio(rates),  # what the model's programs displaced is in it
        "ratio_of_all": ratio(totals),
        "ratio_untriaged": ratio(untriaged),
        "model_share": round(seen["model_cpu"] / (float(seen["run_time"]) * args.workers), 4),
        "books": check_books(mixed),
        "exchanges": by_phase(mixed, seen["down"], seen["up"]),
        "events": events_of(mixed),
        "table": rows,
    }


if __name__ == "__main__":
    sys.exit(main())
