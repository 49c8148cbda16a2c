"""The page: what the templates are given, and the one file that comes out."""

from __future__ import annotations

import base64
import hashlib
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from fuzzer import __version__
from fuzzer.engines.wishes import askable
from fuzzer.labels import agreement, precision
from fuzzer.page.arms import SHOWN, arm_kinds
from fuzzer.page.campaign import CampaignData
from fuzzer.page.chart import Line, duration, interval_bar, line_chart, share_bar, short
from fuzzer.page.finding_view import FindingView, finding_view, visible
from fuzzer.page.series import Series

#: Bytes that findings may take together, so that the page stays below 2 MB; the rest of it takes at most 0.5 MB.
#: Where not all fit with their code, the less severe ones come in brief, in about ``_BRIEF`` bytes.
_CARDS = 1_450_000
_BRIEF = 1_400
#: Findings listed at all.
_FINDINGS = 800

_DOMAINS = {
    "native": "C++ functions",
    "python": "Compiler lines",
    "events": "Compiler events",
    "pairs": "Feature pairs",
}
_STATES = (("confirmed", "c1"), ("debatable", "c2"), ("known", "c3"), ("flaky", "c4"))


@dataclass(frozen=True)
class Live:
    """What a page that is served has beyond one that is a file: Eddy's own text, as it stands. Each finding then tells
    its name as ``data-name``, and the page may ask its own server."""

    style: str
    script: str
    markup: str


def page(data: CampaignData, page_folder: Path, now: float | None = None, live: Live | None = None) -> str:
    """The whole page as HTML. ``page_folder`` is where it will lie: links to files are relative to it."""
    environment = _environment()
    views, cards = _cards(data, page_folder, environment.get_template("finding.html").module, live is not None)
    style, script = _asset("style.css"), _asset("page.js")
    if live is not None:
        style, script = style + live.style, script + live.script
    open_views = [view for view in views if not view.aside]
    return environment.get_template("page.html").render(
        name=visible(data.directory.path.name),
        version=__version__,
        written=time.strftime("%Y-%m-%d %H:%M", time.localtime(now if now is not None else time.time())),
        style=Markup(style),
        script=Markup(script),
        style_hash=_hash(style),
        script_hash=_hash(script),
        live=Markup(live.markup) if live else "",
        headline=_headline(open_views),
        tiles=_tiles(data),
        target=_target(data),
        open_cards=[card for view, card in zip(views, cards) if not view.aside],
        aside_cards=[card for view, card in zip(views, cards) if view.aside],
        copies=any(view.copy for view in views),
        hidden=max(0, len(data.findings) - _FINDINGS),
        kinds=sorted({view.kind for view in views}),
        states=sorted({view.state for view in views}),
        words=list(dict.fromkeys(view.word for view in views)),
        labels=sorted({view.label for view in views if view.label}),
        precision=precision(data.findings, data.labels),
        agreement=agreement(data.findings, data.labels),
        charts=_charts(data.series),
        arms=arm_kinds(data.state) if data.state else [],
        shown=SHOWN,
        engines=_engines(data),
        conformity=data.tally.conformity(),
        features=_never_features(data),
        operators=_never_operators(data),
        buckets=_buckets(data),
        events=[(_clock(event), visible(str(event.get("text", "")))) for event in reversed(data.events)],
        problems=[visible(problem) for problem in data.problems],
    )


def _environment() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("fuzzer.page"),
        autoescape=True,  # whatever the template is called: text of programs and compilers is text
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"short": short, "duration": duration}
    environment.globals |= {"interval_bar": interval_bar, "share_bar": share_bar}
    return environment


def _asset(name: str) -> str:
    return (resources.files("fuzzer.page") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    """Of an inline style or script, for the content security policy: nothing else may style or run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _cards(
    data: CampaignData, page_folder: Path, macros: Any, named: bool = False
) -> tuple[list[FindingView], list[Markup]]:
    """Views of the findings that are listed, and their HTML; the first open one is unfolded."""
    shown = data.findings[:_FINDINGS]
    views: list[FindingView] = []
    cards: list[Markup] = []
    used, unfolded = 0, False
    told: set[str] = set()  # folders of open findings
    for number, finding in enumerate(shown, 1):
        for brief in (False, True):
            view = finding_view(finding, data.folders, data.labels, page_folder, brief)
            copy = not view.aside and not told.isdisjoint(map(str, finding.triage.get("group") or ()))
            view = replace(view, copy=copy)
            card = macros.finding_card(view, not unfolded and not view.aside, named)
            size = len(card.encode("utf-8", "replace"))
            if used + size + _BRIEF * (len(shown) - number) <= _CARDS:
                break
        used += size
        unfolded = unfolded or not view.aside
        if not view.aside:
            told.add(view.name)
        views.append(view)
        cards.append(card)
    return views, cards


def _headline(views: Sequence[FindingView]) -> str:
    """``6 open findings: 2 critical, 1 high, 3 low; 2 labelled real.``, or ``4 open bugs (6 findings): …``."""
    if not views:
        return "No open findings."
    bugs = [view for view in views if not view.copy]
    words = Counter(view.word for view in bugs)
    parts = ", ".join(f"{count} {word}" for word, count in words.items())
    real = sum(view.label == "real" for view in bugs)
    labelled = f"; {real} labelled real" if real else ""
    plural = "s" if len(bugs) > 1 else ""
    what = f"finding{plural}" if len(bugs) == len(views) else f"bug{plural} ({len(views)} findings)"
    return f"{len(bugs)} open {what}: {parts}{labelled}."


@dataclass(frozen=True)
class Tile:
    """One number of the summary; ``note`` explains it in a few words."""

    name: str
    value: str
    note: str = ""


def _tiles(data: CampaignData) -> list[Tile]:
    status = data.status
    coverage: Mapping[str, Any] = status.get("coverage", {})
    reached = [
        Tile(_DOMAINS.get(name, name), f"{count:,}", "run together" if name == "pairs" else "reached")
        for name, count in coverage.items()
        if count
    ]
    stop = "running" if status["running"] else str(status["stop_reason"] or "never ran")
    tiles = [
        Tile("Run time", duration(float(status["run_time"])), visible(stop)),
        Tile("Programs", f"{status['execs_done']:,}", f"{float(status['programs_per_hour']):,.0f} an hour"),
        Tile("Valid", f"{100 * float(status['valid_rate']):.1f} %", "accepted by eager"),
        Tile("Conformity", f"{100 * float(status['conformity']):.1f} %", "of asked features realised"),
        Tile("Operators", f"{status['operators_executed']:,}", "distinct ones executed"),
        Tile("Corpus", f"{status['corpus_count']:,}", "seeds"),
        *reached,
        Tile("Suspects waiting", f"{status['suspects_waiting']:,}", "for triage"),
        Tile("Harness errors", f"{status['harness_errors']:,}", "faults of our own"),
    ]
    return tiles


def _target(data: CampaignData) -> list[tuple[str, str]]:
    """Facts of the target, as findings carry them; without findings only what the statistics say."""
    facts = next((item.target for item in data.findings if item.target), {})
    names = ("torch", "git", "python", "device", "cpu", "compiler", "system")
    rows = [(name, visible(str(facts[name]))) for name in names if facts.get(name)]
    return rows or [("torch", visible(str(data.status["target_torch"]) or "unknown"))]


def _charts(series: Series) -> list[tuple[str, Markup]]:
    findings = [Line(name, series.points(f"findings_{name}"), style) for name, style in _STATES]
    drawn = [("Findings", [line for line in findings if series.grows(f"findings_{line.name}")])]
    for name, words in _DOMAINS.items():
        drawn.append((f"{words} reached", [Line(words, series.points(f"coverage_{name}"))]))
    drawn.append(("Operators executed", [Line("operators", series.points("operators_executed"))]))
    charts = [(title, line_chart(title, lines)) for title, lines in drawn]
    return [(title, chart) for title, chart in charts if chart]


def _engines(data: CampaignData) -> list[tuple[str, int, float, float]]:
    """(engine, programs, valid share, conformity) rows."""
    if data.state is None:
        return []
    return [
        (engine, runs, valid / max(1, runs), realised / max(1, asked))
        for engine, (runs, valid, asked, realised) in sorted(data.state.per_engine.items())
    ]


@dataclass(frozen=True)
class Never:
    """Members of one group that were never reached, of ``whole``."""

    group: str
    names: tuple[str, ...]
    whole: int


def _never_features(data: CampaignData) -> list[Never]:
    if data.state is None:
        return []
    can = askable()
    missing = set(data.tally.never(data.state.space.features))
    rows = []
    for dimension in data.state.space.dimensions.values():
        names = [
            feature.value + ("" if feature.id in can else " (only recognised)")
            for feature in dimension.values
            if feature.id in missing
        ]
        rows.append(Never(dimension.name, tuple(names), len(dimension.values)))
    return [row for row in rows if row.names]


def _never_operators(data: CampaignData) -> list[Never]:
    if data.state is None:
        return []
    used, executed, by_key = data.state.used, data.state.executed, data.state.operators.by_key
    rows = []
    for family, keys in data.state.operators.choosable().items():
        names = [key for key in keys if key not in used and not executed.intersection(by_key[key].aten)]
        rows.append(Never(family, tuple(names), len(keys)))
    return sorted((row for row in rows if row.names), key=lambda row: (-len(row.names), row.group))


def _buckets(data: CampaignData) -> list[tuple[str, str, int, float, bool]]:
    """(signature, state, programs, share of runs, blocks) of the fullest buckets of suspects."""
    if data.state is None:
        return []
    runs = max(1, data.state.counters.runs)
    active = data.state.schedule.blockers.active
    fullest = sorted(data.state.buckets.items(), key=lambda item: (-item[1].count, item[0]))[:10]
    return [
        (visible(major[:240]), bucket.state, bucket.count, bucket.count / runs, major in active)
        for major, bucket in fullest
    ]


def _clock(event: Mapping[str, Any]) -> str:
    try:
        return time.strftime("%m-%d %H:%M", time.localtime(float(event.get("time", 0))))
    except (TypeError, ValueError, OverflowError):
        return ""
