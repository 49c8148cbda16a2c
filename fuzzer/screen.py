"""What a person sees of a running campaign: a live screen on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import time
from collections import deque
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from fuzzer.statistics import statistics

if TYPE_CHECKING:
    from fuzzer.campaign import Campaign

_LINES_KEPT = 8
_PLAIN_SECONDS = 15.0


class Screen:
    """Shows a campaign. ``note`` takes its events; ``refresh`` is called about once a second."""

    def __init__(self, quiet: bool = False) -> None:
        self.console = Console(stderr=True)
        self.quiet = quiet
        self.campaign: Campaign | None = None
        self._lines: deque[tuple[str, str, str]] = deque(maxlen=_LINES_KEPT)
        self._live: Live | None = None
        self._last_plain = 0.0

    def open(self, campaign: Campaign) -> None:
        self.campaign = campaign
        if self.console.is_terminal and not self.quiet:
            self._live = Live(console=self.console, refresh_per_second=2, transient=False)
            self._live.start()

    def close(self) -> None:
        if self._live is not None:
            self.refresh()
            self._live.stop()
            self._live = None

    def note(self, kind: str, text: str) -> None:
        """One event. Text may come from programs: it is shown as text, never as markup."""
        text = printable(text)
        clock = time.strftime("%H:%M:%S")
        self._lines.append((clock, kind, text))
        if self._live is None and not self.quiet:
            print(f"[{clock}] {kind}: {text}", file=sys.stderr, flush=True)

    def refresh(self) -> None:
        if self.campaign is None or self.quiet:
            return
        if self._live is not None:
            self._live.update(self._page())
        elif time.monotonic() - self._last_plain > _PLAIN_SECONDS:
            self._last_plain = time.monotonic()
            print(f"[{time.strftime('%H:%M:%S')}] {plain_line(self.campaign)}", file=sys.stderr, flush=True)

    # -- live -----------------------------------------------------------------------------------------------------

    def _page(self) -> Group:
        assert self.campaign is not None
        return Group(self._numbers(self.campaign), self._arms(self.campaign), self._recent())

    def _numbers(self, campaign: Campaign) -> Panel:
        values = statistics(campaign)
        left, middle, right = Table.grid(padding=(0, 1)), Table.grid(padding=(0, 1)), Table.grid(padding=(0, 1))
        for name, text in (
            ("run time", clock(float(values["run_time"]))),
            ("programs", f"{values['execs_done']:,}"),
            ("programs/h", f"{values['programs_per_hour']:,.0f}"),
            ("valid", f"{100 * float(values['valid_rate']):.1f} %"),
            ("conformity", f"{100 * float(values['conformity']):.0f} %"),
        ):
            left.add_row(Text(name, style="dim"), text)
        for domain in ("native", "python", "events", "pairs"):
            middle.add_row(Text(domain, style="dim"), f"{values[f'coverage_{domain}']:,}")
        middle.add_row(Text("operators", style="dim"), f"{values['operators_executed']:,}")
        for state in ("confirmed", "debatable", "known", "flaky"):
            style = "bold red" if state == "confirmed" and values[f"findings_{state}"] else ""
            right.add_row(Text(state, style="dim"), Text(str(values[f"findings_{state}"]), style=style))
        right.add_row(Text("corpus", style="dim"), f"{values['corpus_count']:,}")
        grid = Table.grid(expand=True)
        for _ in range(3):
            grid.add_column(ratio=1)
        grid.add_row(
            Panel(left, title="pace"), Panel(middle, title="coverage beyond start"), Panel(right, title="findings")
        )
        title = (
            f"eddy {campaign.directory.path.name} · torch {values['target_torch']} · {values['workers_alive']} workers"
        )
        return Panel(grid, title=Text(title), subtitle=Text("Ctrl-C drains; again kills"))

    def _arms(self, campaign: Campaign) -> Panel:
        table = Table.grid(padding=(0, 2))
        for name, text in strongest_arms(campaign):
            table.add_row(Text(name, style="dim"), Text(text))
        return Panel(table, title="strongest arms (posterior mean)")

    def _recent(self) -> Panel:
        lines = Text()
        for clock, kind, text in self._lines:
            style = {"finding": "bold red", "warning": "yellow"}.get(kind, "")
            lines.append(f"{clock} ", style="dim").append(f"{kind}: {text}\n", style=style)
        return Panel(lines, title="last events")


def strongest_arms(campaign: Campaign, count: int = 5) -> list[tuple[str, str]]:
    """Per kind of arm, the best by posterior mean, among those pulled at least five times."""
    schedule = campaign.state.schedule
    rows = []
    sets = {"mutations": schedule.mutations, "families": schedule.families, "features": schedule.vectors.values}
    for name, arms in sets.items():
        pulled = [arm for arm in arms.arms if arms.pulls(arm) >= 5]
        best = sorted(pulled, key=lambda arm: -arms.posterior(arm)[0])[:count]
        rows.append((name, ", ".join(f"{arm} {arms.posterior(arm)[0]:.2f}" for arm in best) or "–"))
    return rows


def printable(text: str) -> str:
    """A line without control characters: what a program prints must not drive the terminal of who reads it."""
    return "".join(char if char.isprintable() else "�" for char in text)


def plain_line(campaign: Campaign) -> str:
    """The state of a campaign in one line."""
    values = statistics(campaign)
    coverage = " ".join(f"{name} {values[f'coverage_{name}']}" for name in ("native", "python", "events"))
    findings = " ".join(
        f"{values[f'findings_{state}']} {state}" for state in ("confirmed", "debatable", "known", "flaky")
    )
    return (
        f"{clock(float(values['run_time']))} · {values['execs_done']} programs ({values['programs_per_hour']:.0f}/h, "
        f"{100 * float(values['valid_rate']):.0f} % valid) · coverage {coverage} · {values['operators_executed']} "
        f"operators · findings {findings}"
    )


def clock(seconds: float) -> str:
    whole = int(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"
