"""Where results go, and how tables look."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

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


def table(rows: Sequence[Sequence[Any]]) -> str:
    """Rows as aligned columns; the first row is the head."""
    texts = [[_text(cell) for cell in row] for row in rows]
    widths = [max(len(row[column]) for row in texts) for column in range(len(texts[0]))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in texts]
    return "\n".join([lines[0], "  ".join("-" * width for width in widths), *lines[1:]])


def _text(cell: Any) -> str:
    return f"{cell:.3f}" if isinstance(cell, float) else str(cell)
