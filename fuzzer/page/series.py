"""Numbers over time: ``plot_data`` as columns, and thinning that keeps what the eye would see."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

Point = tuple[float, float]

_TIME = "run_time"


@dataclass(frozen=True)
class Series:
    """Columns of ``plot_data`` by name, all as long as ``seconds`` (run time, never falling)."""

    seconds: list[float] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.seconds)

    def points(self, name: str) -> list[Point]:
        """(seconds, value) pairs of a column; empty for one that is not there."""
        return list(zip(self.seconds, self.columns.get(name, ())))

    def grows(self, name: str) -> bool:
        """Does the column hold anything but zeros?"""
        return any(self.columns.get(name, ()))


def read_plot(path: Path, wanted: Iterable[str]) -> Series:
    """Columns ``wanted`` of a ``plot_data`` file; those that it lacks are left out. Empty when there is no file.

    Lines that are torn, or of an older header, are skipped.
    """
    wanted = tuple(wanted)
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except FileNotFoundError:
        return Series()
    names: list[str] = []
    places: list[int] = []
    kept: list[str] = []
    seconds: list[float] = []
    columns: dict[str, list[float]] = {}
    for line in lines:
        if line.startswith("#"):
            names = [name.strip() for name in line[1:].split(",")]
            if _TIME not in names:
                names = []
                continue
            kept = [name for name in wanted if name in names]
            places = [names.index(name) for name in (_TIME, *kept)]
            for name in kept:
                columns.setdefault(name, [0.0] * len(seconds))
            continue
        cells = line.split(",")
        if not names or len(cells) != len(names):
            continue
        try:
            values = [float(cells[place]) for place in places]
        except ValueError:
            continue
        if not all(map(math.isfinite, values)):
            continue
        seconds.append(max(values[0], seconds[-1] if seconds else 0.0))
        for name, value in zip(kept, values[1:]):
            columns[name].append(value)
        for name in columns.keys() - kept:  # a later header lacks it
            columns[name].append(columns[name][-1] if columns[name] else 0.0)
    return Series(seconds, columns)


def downsample(points: Sequence[Point], buckets: int = 200) -> list[Point]:
    """Fewer points, same picture: of each of ``buckets`` equal stretches of x the first, lowest, highest and last.

    At most 4·buckets points, in order; extremes and both ends are kept (the M4 aggregation of Jugel et al., 2014).
    """
    if len(points) <= 4 * buckets:
        return list(points)
    start, end = points[0][0], points[-1][0]
    width = (end - start) / buckets or 1.0
    kept: list[int] = []
    first = 0
    while first < len(points):
        stop = start + (math.floor((points[first][0] - start) / width) + 1) * width
        last = first
        lowest = highest = first
        while last + 1 < len(points) and (points[last + 1][0] < stop or points[last + 1][0] <= points[first][0]):
            last += 1
            if points[last][1] < points[lowest][1]:
                lowest = last
            if points[last][1] > points[highest][1]:
                highest = last
        kept += sorted({first, lowest, highest, last})
        first = last + 1
    return [points[index] for index in kept]
