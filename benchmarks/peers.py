"""Eddy and NNSmith side by side: the same machine, the same time, one core each, the same instruments.

    python -m benchmarks.peers --nnsmith PYTHON_WITH_NNSMITH [--minutes 20] [--out DIR]

Both run at once, each bound to a core of its own, Eddy with one worker. NNSmith runs by ``benchmarks/peer_nnsmith.py``
(see there for what its interpreter needs); its own preparation, which it remembers, is not counted: run it once before.
Its reports are under ``DIR/nnsmith/bugs``: which of them are faults has to be read, as with Eddy's under ``DIR/eddy``.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.cores import bound
from benchmarks.results import save, table


def start(command: list[str], core: int, output: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """A process bound to one core, with what it prints in ``output``. Its children inherit the binding."""
    with output.open("wb") as file:
        return subprocess.Popen(
            [*bound(core), *command],
            stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.STDOUT, env={**os.environ, **environment},
        )  # fmt: skip


def last_json(output: Path) -> dict[str, Any]:
    """The last line that is a JSON object; empty where there is none (the process died)."""
    for line in reversed(output.read_text(errors="replace").splitlines()):
        if line.startswith("{"):
            return dict(json.loads(line))
    return {}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("--nnsmith", required=True, metavar="PYTHON")
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("campaigns/peers"))
    args = parser.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    seconds, folder = round(60 * args.minutes), args.out.resolve()
    cores = sorted(os.sched_getaffinity(0))
    fuzz = [sys.executable, "-m", "fuzzer", "fuzz", str(folder / "eddy"), "--workers", "1", "--seed", str(args.seed)]
    script = str(Path(__file__).with_name("peer_nnsmith.py"))
    peer = [
        args.nnsmith,
        script,
        "--seconds",
        str(seconds),
        "--root",
        str(folder / "nnsmith"),
        "--seed",
        str(args.seed),
    ]
    cache = {
        "TORCHINDUCTOR_CACHE_DIR": str(folder / "cache"),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "OMP_NUM_THREADS": "1",
    }
    running = [
        start([*fuzz, "--max-time", f"{seconds}s", "--json"], cores[0], folder / "eddy.log", {}),
        start(peer, cores[-1], folder / "nnsmith.log", cache),
    ]
    for process in running:
        process.wait()
    eddy, other = last_json(folder / "eddy.log"), last_json(folder / "nnsmith.log")
    rows = [["", "Eddy", "NNSmith 0.1.0"]]
    rows += [
        [name, ours if ours is not None else "–", theirs if theirs is not None else "–"]
        for name, ours, theirs in compared(eddy, other)
    ]
    print(table(rows))
    command = f"python -m benchmarks.peers --nnsmith PYTHON --minutes {args.minutes:g} --seed {args.seed}"
    save("peers", command, {"eddy": {name: ours for name, ours, _theirs in compared(eddy, other)}, "nnsmith": other})
    return 0


def compared(eddy: dict[str, Any], other: dict[str, Any]) -> list[tuple[str, Any, Any]]:
    """Name, Eddy's figure, NNSmith's. A program of NNSmith that it could not make counts as not valid."""
    made, failed = other.get("programs", 0), other.get("not_made", 0)
    share = round(made / (made + failed), 3) if made + failed else None
    return [
        ("programs", eddy.get("execs_done"), other.get("programs")),
        ("programs an hour", eddy.get("programs_per_hour"), other.get("programs_per_hour")),
        ("valid", eddy.get("valid_rate"), share),
        ("operators", eddy.get("operators_executed"), other.get("operators")),
        ("native functions of the compiler", eddy.get("coverage_native"), other.get("native")),
        ("lines of the compiler's Python", eddy.get("coverage_python"), other.get("python")),
        ("reports", eddy.get("findings_confirmed"), other.get("reports")),
        ("reports called debatable", eddy.get("findings_debatable"), None),
    ]


if __name__ == "__main__":
    raise SystemExit(main())
