"""Commands that stay on one core, so that two of them run side by side without taking from each other."""

from __future__ import annotations

import sys


def bound(core: int | None) -> list[str]:
    """What to put before a command so that it, and all that it starts, stays on one core; [] for None."""
    if core is None:
        return []
    code = f"import os, sys; os.sched_setaffinity(0, [{core}]); os.execvp(sys.argv[1], sys.argv[1:])"
    return [sys.executable, "-c", code]
