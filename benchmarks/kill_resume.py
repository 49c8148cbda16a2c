"""kill -9 at random moments, resume each time: is anything lost, does anything stay behind?

    python -m benchmarks.kill_resume [--kills 20] [--fake] [--seconds 5] [--workers 2]

Per kill: programs and journal bytes before and after, seconds until the resumed campaign ran its first new program.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks import results
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal
from fuzzer.store.stats import read_status

#: What may be killed is the orchestrator alone: the kernel has to end all the rest, within this.
_ORPHAN_SECONDS = 3.0
_START_SECONDS = 180.0


@dataclass
class Kill:
    """One kill and what was found afterwards."""

    number: int
    after_seconds: float  # from start (or resumption) to the kill
    records: int  # in the journal after the kill
    runs: int
    findings: int
    torn_bytes: int  # behind the last whole record
    lost_records: int  # of those that were there at an earlier look
    orphans: int
    to_first_run: float  # seconds from the (re)start before this kill to its first new program; -1: killed before


def orphans(marker: str, allowed: set[int] = frozenset()) -> list[int]:  # type: ignore[assignment]
    """Living processes whose command line, environment or working folder names the campaign."""
    found = []
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) in allowed | {os.getpid()}:
            continue
        try:
            texts = [Path(f"/proc/{entry}/{name}").read_bytes() for name in ("cmdline", "environ")]
            texts.append(os.fsencode(os.readlink(f"/proc/{entry}/cwd")))
            state = Path(f"/proc/{entry}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            continue
        if state != "Z" and any(marker.encode() in text for text in texts):
            found.append(int(entry))
    return found


def journal_records(path: Path) -> list[dict[str, Any]]:
    journal = CampaignDirectory(path, {}).journal
    return [record for _offset, record in read_journal(journal)] if journal.exists() else []


def run(path: Path, kills: int, fake: bool, seconds: float, seed: int = 1, workers: int = 2) -> list[Kill]:
    """The experiment. Raises ``AssertionError`` where something was lost or stayed behind."""
    rng = random.Random(seed)
    rows: list[Kill] = []
    before: list[dict[str, Any]] = []
    for number in range(1, kills + 1):
        rows.append(_one_kill(path, number, before, _command(path, fake, workers), seconds, rng))
        before = journal_records(path)
    drained = _start(path, [*_command(path, fake, workers), "--max-execs", "1"])
    assert drained.wait(_START_SECONDS) == 0, "the last resumption failed"
    after = journal_records(path)
    assert after[: len(before)] == before and len(after) > len(before)
    assert not orphans(str(path))
    return rows


def _command(path: Path, fake: bool, workers: int) -> list[str]:
    command = [sys.executable, "-m", "fuzzer", "fuzz", str(path), "--resume-or-new", "--workers", str(workers)]
    return [*command, "--target", "fake:"] if fake else command


def _start(path: Path, command: list[str]) -> subprocess.Popen[bytes]:
    with open(path.with_suffix(".log"), "ab") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)


def _one_kill(
    path: Path, number: int, before: list[dict[str, Any]], command: list[str], seconds: float, rng: random.Random
) -> Kill:
    journal, size = CampaignDirectory(path, {}).journal, 0
    if journal.exists():
        size = journal.stat().st_size
    started = time.monotonic()
    process = _start(path, command)
    # Every third kill strikes a running campaign, after its first new program; the rest anywhere, start included.
    pause, running = rng.uniform(0.0, 2.0 * seconds), number % 3 == 0
    first_run, deadline = -1.0, started + (_START_SECONDS if running else pause)
    while time.monotonic() < deadline and process.poll() is None:
        if first_run < 0 and journal.exists() and journal.stat().st_size > size + 200:
            first_run = time.monotonic() - started
            deadline = min(deadline, started + first_run + pause)
        time.sleep(0.005)
    assert process.poll() is None, f"the campaign ended by itself: {path.with_suffix('.log').read_text()[-500:]}"
    acknowledged = journal_records(path)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed = time.monotonic()
    left = orphans(str(path))
    while left and time.monotonic() - killed < _ORPHAN_SECONDS:
        time.sleep(0.02)
        left = orphans(str(path))
    records = journal_records(path)
    sound = 0
    if journal.exists():
        sound = max([offset for offset, _record in read_journal(journal)], default=0)
    row = Kill(
        number=number,
        after_seconds=killed - started,
        records=len(records),
        runs=sum(record["t"] == "run" for record in records),
        findings=len(list((path / "findings").glob("[!.]*"))) if path.exists() else 0,
        torn_bytes=journal.stat().st_size - sound if journal.exists() else 0,
        lost_records=_lost(before, records) + _lost(acknowledged, records),
        orphans=len(left),
        to_first_run=first_run,
    )
    assert row.lost_records == 0, f"kill {number}: {row.lost_records} records lost"
    assert not left, f"kill {number}: processes {left} stayed behind"
    if (path / "campaign.toml").exists():  # else it was killed before it made one
        assert read_status(CampaignDirectory.open(path))["running"] is False
    return row


def _lost(earlier: list[dict[str, Any]], later: list[dict[str, Any]]) -> int:
    """How many of the earlier records are not, in their place, among the later ones."""
    return sum(1 for number, record in enumerate(earlier) if number >= len(later) or later[number] != record)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kill_resume", description=__doc__)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seconds", type=float, help="mean seconds to a kill (default: 5; with --fake 1)")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--fake", action="store_true", help="without torch")
    args = parser.parse_args(argv)
    seconds = args.seconds or (1.0 if args.fake else 5.0)
    with tempfile.TemporaryDirectory(prefix="eddy-kill-") as folder:
        rows = run(Path(folder) / "campaign", args.kills, args.fake, seconds, workers=args.workers)
    names = list(asdict(rows[0]))
    print(results.table([names, *[list(asdict(row).values()) for row in rows]]))
    reached = sorted(row.to_first_run for row in rows if row.to_first_run >= 0)
    numbers = {
        "kills": len(rows),
        "lost_records": sum(row.lost_records for row in rows),
        "torn_tails": sum(row.torn_bytes > 0 for row in rows),
        "orphans": sum(row.orphans for row in rows),
        "median_seconds_to_first_run": reached[len(reached) // 2] if reached else None,
        "rows": [asdict(row) for row in rows],
    }
    options = " --fake" if args.fake else ""
    command = (
        f"python -m benchmarks.kill_resume --kills {args.kills} --seconds {seconds:g} --workers {args.workers}{options}"
    )
    path = results.save("kill_resume_fake" if args.fake else "kill_resume", command, numbers)
    print(f"{len(rows)} kills: {numbers['lost_records']} records lost, {numbers['orphans']} orphans → {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
