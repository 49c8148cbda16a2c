"""Back-off over failures: closed while all is well, open while waiting, half-open for one trial at a time. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable

_FIRST, _LONGEST = 1.0, 300.0  # seconds


class Outage:
    """State of one endpoint's health. Waits double from one second to five minutes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic, first: float = _FIRST) -> None:
        self.clock, self.first = clock, first
        self.failures = 0  # in a row
        self._until = 0.0

    @property
    def open(self) -> bool:
        return self.failures > 0

    @property
    def wait(self) -> float:
        """Seconds until the next trial is due; 0 when it is."""
        return max(0.0, self._until - self.clock()) if self.open else 0.0

    def failed(self, retry_after: float | None = None) -> None:
        """One more failure. ``retry_after``: what the server asked for, in seconds; never shortened."""
        self.failures += 1
        pause = min(_LONGEST, self.first * 2.0 ** min(self.failures - 1, 20))
        self._until = self.clock() + max(pause, retry_after or 0.0)

    def succeeded(self) -> None:
        self.failures = 0
