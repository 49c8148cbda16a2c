"""Small charts as inline SVG. Colours come from the page's style sheet by class, so that they follow its theme."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

from fuzzer.page.series import Point, downsample

#: Of the view box. The page scales charts to columns of 300 to 350 px, so that text is 10 to 12 px high.
_WIDTH, _HEIGHT = 360.0, 170.0
_LEFT, _TOP, _BOTTOM = 38.0, 10.0, 24.0
_LABEL_GAP = 13.0

#: From a point of a series to a place in the view box.
Place = Callable[[Point], tuple[float, float]]

#: Seconds between marks on the time axis.
_STEPS = (1, 5, 10, 30, 60, 300, 600, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000)
_MARKS = 4


@dataclass(frozen=True)
class Line:
    """One line of a chart: what it is, its points in order of x (seconds), and the class that colours it."""

    name: str
    points: Sequence[Point]
    style: str = "c1"


def line_chart(title: str, lines: Sequence[Line]) -> Markup:
    """Lines over time with axes from zero; each line's end is labelled. Empty markup when there is no point."""
    lines = [line for line in lines if line.points]
    if not lines:
        return Markup("")
    right = 44.0 if len(lines) == 1 else 112.0
    across = max(line.points[-1][0] for line in lines) or 1.0
    up = max(value for line in lines for _x, value in line.points)
    ticks = _ticks(up)
    top = ticks[-1]

    def place(point: Point) -> tuple[float, float]:
        x = _LEFT + point[0] / across * (_WIDTH - _LEFT - right)
        return x, _HEIGHT - _BOTTOM - point[1] / top * (_HEIGHT - _TOP - _BOTTOM)

    summary = "; ".join(f"{line.name} {short(line.points[-1][1])}" for line in lines)
    parts = [
        f'<svg class="chart" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(f"{title} over {duration(across)}: {summary}")}">'
    ]
    for tick in ticks:
        y = place((0.0, tick))[1]
        parts.append(f'<line class="grid" x1="{_LEFT:.0f}" x2="{_WIDTH - right:.0f}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(f'<text class="tick" x="{_LEFT - 6:.0f}" y="{y + 4:.1f}" text-anchor="end">{short(tick)}</text>')
    for seconds in _time_marks(across):
        x = place((seconds, 0.0))[0]
        parts.append(
            f'<text class="tick" x="{x:.1f}" y="{_HEIGHT - 6:.0f}" text-anchor="middle">{duration(seconds)}</text>'
        )
    for line in lines:
        path = "".join(f"{'L' if number else 'M'}{x:.1f} {y:.1f}" for number, (x, y) in enumerate(_drawn(line, place)))
        parts.append(f'<path class="line {escape(line.style)}" d="{path}"/>')
    for x, y, line in _spread(lines, place):
        name = f"{line.name} " if len(lines) > 1 else ""
        text = escape(f"{name}{short(line.points[-1][1])}")
        parts.append(f'<text class="end {escape(line.style)}" x="{x + 6:.1f}" y="{y + 4:.1f}">{text}</text>')
    return Markup("".join([*parts, "</svg>"]))


def _drawn(line: Line, place: Place) -> Iterator[tuple[float, float]]:
    last = None
    for point in downsample(line.points):
        x, y = place(point)
        rounded = (round(x, 1), round(y, 1))
        if rounded != last:
            last = rounded
            yield x, y


def _spread(lines: Sequence[Line], place: Place) -> Iterator[tuple[float, float, Line]]:
    """Where the labels of lines go: at their ends, the lowest first, moved up where they would overlap."""
    ends = [(*place(line.points[-1]), line) for line in lines]
    limit = _HEIGHT - _BOTTOM
    for x, y, line in sorted(ends, key=lambda end: -end[1]):
        limit = min(y, limit)
        yield x, limit, line
        limit -= _LABEL_GAP


def interval_bar(low: float, mean: float, high: float, scale: float, rate: float) -> Markup:
    """A row's interval with its mean, on an axis from 0 to ``scale``; a thin mark stands at ``rate``."""
    width = 150.0

    def place(value: float) -> float:
        return 3.0 + min(max(value / scale if scale > 0 else 0.0, 0.0), 1.0) * (width - 6.0)

    return Markup(
        f'<svg class="interval" viewBox="0 0 {width:.0f} 14" aria-hidden="true">'
        f'<line class="rate" x1="{place(rate):.1f}" x2="{place(rate):.1f}" y1="0" y2="14"/>'
        f'<line class="span" x1="{place(low):.1f}" x2="{place(high):.1f}" y1="7" y2="7"/>'
        f'<circle class="mean" cx="{place(mean):.1f}" cy="7" r="3"/></svg>'
    )


def share_bar(share: float) -> Markup:
    """A bar filled to ``share`` (0 … 1)."""
    filled = 100.0 * min(max(share, 0.0), 1.0)
    return Markup(
        '<svg class="share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        f'<rect class="all" width="100" height="8"/><rect class="part" width="{filled:.1f}" height="8"/></svg>'
    )


def _ticks(top: float) -> list[float]:
    """Round numbers from 0 to the first at or above ``top``: steps of 1, 2, 2.5 or 5 times a power of ten."""
    if not top / 4 > sys.float_info.min:  # nothing that is measured is that small, and its steps would be no numbers
        return [0.0, 1.0]
    rough = top / 4
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * 0.999)
    step = max(step, 1.0) if top >= 1 else step
    return [number * step for number in range(math.ceil(top / step - 1e-9) + 1)]


def _time_marks(across: float) -> list[float]:
    step = next(
        (step for step in _STEPS if across / step <= _MARKS), _STEPS[-1] * math.ceil(across / _STEPS[-1] / _MARKS)
    )
    return [float(number * step) for number in range(int(across // step) + 1)]


def short(value: float) -> str:
    """``950``, ``14.1k``, ``2.3M``: three digits or so."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{unit}"
    return f"{value:.3g}"


def duration(seconds: float) -> str:
    """``0``, ``45 s``, ``12 min``, ``2 h 30``, ``3 d 4 h``."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s" if whole else "0"
    if whole < 3600:
        return f"{whole // 60} min"
    if whole < 86400:
        return f"{whole // 3600} h" + (f" {whole // 60 % 60:02}" if whole % 3600 >= 60 else "")
    return f"{whole // 86400} d" + (f" {whole // 3600 % 24} h" if whole % 86400 >= 3600 else "")
