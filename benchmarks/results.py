"""Where results go, and how tables look."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.journal import read_journal

FOLDER = Path(__file__).parent.parent / "docs" / "benchmarks"


def machine() -> dict[str, Any]:
    """What a number depends on most."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2),
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
    }


def save(name: str, command: str, numbers: dict[str, Any]) -> Path:
    """Write ``docs/benchmarks/<name>.json``."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(json.dumps({"command": command, "machine": machine(), **numbers}, indent=2) + "\n")
    return path


def untriaged_pace(path: Path, workers: int) -> float:
    """Programs an hour of a campaign from its first program to its last, without the time that workers gave to
    suspects: how many of those turn up is chance, and one can take as long as fifty programs."""
    records = [record for _at, record in read_journal(CampaignDirectory.open(path).journal)]
    at = [float(record["at"]) for record in records if record["t"] == "run"]
    if len(at) < 2:
        return 0.0
    triage = sum(float(record.get("triage", 0.0)) for record in records if record["t"] in ("bucket", "sure"))
    working = workers * (at[-1] - at[0]) - triage
    return round(3600 * workers * (len(at) - 1) / working, 1) if working > 0 else 0.0


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as aligned columns; the first row is the head."""
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in texts]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _text(cell: Any) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
