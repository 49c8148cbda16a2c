"""One finding as the page shows it: plain text in a fixed order, never markup."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from fuzzer.finding import Finding
from fuzzer.labels import Judgement, Labels, automatic, set_aside
from fuzzer.page.chart import duration
from fuzzer.report import PARTS, PLAIN_LINK, plain_title
from fuzzer.severity import severity

#: Characters of one text on the page; the files hold the whole.
_PROGRAM, _TAIL, _MESSAGE, _LINE = 6000, 4000, 1500, 300

_SIDES = ("reference", "eager", "compiled")

#: Keys of ``Finding.triage`` that have a place of their own; any other is shown by its name.
_PLACED = frozenset(
    {"backend", "bisect", "versions", "hypothesis", "replays", "reduction", "essential_features", "free_features",
     "untold_features", "variants", "group", "similar", "kernel", "environment"}
)  # fmt: skip

#: Writing direction marks and control characters can make text read otherwise than it runs.
_INVISIBLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


@dataclass(frozen=True)
class Element:
    """One element of a value. ``heat`` (0 … 5) is the size of compiled's error, ``eager_heat`` of eager's."""

    index: str
    reference: str
    eager: str
    compiled: str
    heat: int
    eager_heat: int


@dataclass(frozen=True)
class ValueView:
    """The value that differs: one line about it, metadata that differ, worst elements."""

    about: str
    metadata: tuple[tuple[str, str, str], ...]
    elements: tuple[Element, ...]


@dataclass(frozen=True)
class FeatureList:
    """Features of the smallest program that are alike in one thing; ``term`` says in what, ``mark`` is a style."""

    term: str
    mark: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class ClassView:
    """One class that the rules gave, and why."""

    part: str
    name: str
    reasons: tuple[str, ...]


@dataclass(frozen=True)
class SimilarView:
    """An imported issue that looks alike. ``link`` is empty where it is no plain address."""

    number: str
    title: str
    link: str
    score: str


@dataclass(frozen=True)
class FindingView:
    """Everything about one finding, ready to be shown. ``aside`` says why it is no open bug; empty for one that is.

    ``program`` and ``tail`` are the reproducing script in two parts: what was found, and what makes it show by itself.
    ``whole`` says that together they are the very file ``script``. ``brief`` findings come without code: a page has
    its limits. ``copy``: a graver finding of the same bug comes before it. ``kernel`` is what Inductor generated.
    ``variants`` are (backend or option, outcome, passes) rows; ``group`` holds (name, anchor) of findings that are the
    same bug, the anchor empty where the page has none.
    """

    name: str
    anchor: str
    title: str
    word: str
    rank: int
    why: str
    kind: str
    state: str
    label: str
    label_text: str
    aside: str
    seen: int
    reason: str
    where: tuple[tuple[str, str], ...]
    evidence: tuple[tuple[str, str], ...]
    errors: tuple[tuple[str, str], ...]
    value: ValueView | None
    versions: tuple[tuple[str, str], ...]
    hypothesis: str
    program: str
    tail: str
    script: str
    whole: bool
    links: tuple[tuple[str, str], ...]
    brief: bool = False
    features: tuple[FeatureList, ...] = ()
    variants: tuple[tuple[str, str, bool], ...] = ()
    group: tuple[tuple[str, str], ...] = ()
    classes: tuple[ClassView, ...] = ()
    similar: tuple[SimilarView, ...] = ()
    copy: bool = False
    kernel: str = ""

    @property
    def gist(self) -> str:
        """The reason's beginning, on one line."""
        line = " ".join(self.reason.split())
        return line if len(line) <= 160 else line[:159] + "…"


def finding_view(
    finding: Finding, folders: Mapping[str, Path], labels: Labels, page_folder: Path, brief: bool = False
) -> FindingView:
    """
    Args:
        folders: where findings lie, by major signature.
        page_folder: where the page will lie; links lead from there.
        brief: leave out code and values.
    """
    folder = folders.get(finding.signature.major)
    judgement = labels.get(finding.signature.major)
    weight = severity(finding)
    name = folder.name if folder else finding.sig8
    script = "reduced.py" if finding.reduced else "repro.py"
    program = finding.shown_text.strip("\n")
    tail = "" if brief or len(program) > _PROGRAM else _tail(folder, script, program)
    return FindingView(
        name=visible(name),
        anchor=_anchor(name),
        title=visible(plain_title(finding)),
        word=weight.word,
        rank=weight.rank,
        why=weight.reason,
        kind=finding.kind.value,
        state="debatable" if automatic(finding) == "debatable" else finding.state.value,
        label=judgement.label.value if judgement else "",
        label_text=visible(_label_text(judgement, folders) if judgement else ""),
        aside=visible(set_aside(finding, judgement)),
        seen=finding.duplicates + 1,
        reason=visible(cut(finding.reason, 600)),
        where=tuple((term, visible(cut(text, _LINE))) for term, text in _where(finding)),
        evidence=tuple((term, visible(cut(text, _LINE))) for term, text in _evidence(finding)),
        errors=() if brief else tuple((stage, visible(cut(text, _MESSAGE))) for stage, text in _errors(finding)),
        value=None if brief else _value(finding),
        versions=tuple((visible(str(k)), visible(_plain(v))) for k, v in _map(finding.triage.get("versions")).items()),
        hypothesis=visible(cut(_plain(finding.triage.get("hypothesis", "")), _MESSAGE)),
        program="" if brief else visible(cut(program, _PROGRAM)),
        tail=visible(tail),
        script=script,
        whole=bool(tail) and visible(program + tail) == program + tail,
        links=tuple(_links(folder, page_folder)) if folder else (),
        brief=brief,
        features=() if brief else tuple(_features(finding)),
        variants=() if brief else tuple(_variants(finding)),
        group=() if brief else tuple(_group(finding, folders)),
        kernel="" if brief else visible(cut(str(finding.triage.get("kernel", "")), _TAIL)),
        classes=() if brief else tuple(_classes(finding)),
        similar=() if brief else tuple(_similar(finding)),
    )


def _anchor(name: str) -> str:
    return "f-" + re.sub(r"[^A-Za-z0-9_-]", "_", name)


def visible(text: str) -> str:
    """Text whose invisible characters are spelt out, so that it reads as it runs; tabs and line breaks stay."""
    return _INVISIBLE.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def cut(text: str, most: int) -> str:
    """At most ``most`` characters, and a word about the rest."""
    return text if len(text) <= most else f"{text[:most]}\n… {len(text) - most} characters more in the file"


def _label_text(judgement: Judgement, folders: Mapping[str, Path]) -> str:
    other = folders.get(judgement.of)
    of = f"of {other.name if other else judgement.of}" if judgement.of else ""
    return "; ".join(text for text in (of, judgement.why) if text)


def _where(finding: Finding) -> Iterator[tuple[str, str]]:
    """Which part of the compiler fails."""
    triage = finding.triage
    if triage.get("backend"):
        yield "First failing backend", _plain(triage["backend"])
    bisected = _map(triage.get("bisect"))
    if bisected.get("subsystem"):
        what = f" no. {bisected.get('number')}: {bisected['what']}" if bisected.get("what") else ""
        yield "Torch's bisector names", f"{bisected['subsystem']}{what}"
    if bisected.get("replay"):
        yield "Replay", str(bisected["replay"])
    end = _map(finding.facts.get("end"))
    if end.get("how", "done") != "done":
        yield "Process ended", " ".join(str(end[key]) for key in ("how", "signal", "stage", "why") if end.get(key))
    for key, item in triage.items():
        if key == "class" and isinstance(item, Mapping):
            continue  # has a place of its own
        if key not in _PLACED and item not in ("", None, [], {}):
            yield key.replace("_", " ").capitalize(), _plain(item)


#: Key of ``Finding.triage`` → what it says of features, and a style.
_FEATURES = (
    ("essential_features", "Needs", "needed"),
    ("free_features", "Does not need", "free"),
    ("untold_features", "Cannot be told", "untold"),
)


def _features(finding: Finding) -> Iterator[FeatureList]:
    for key, term, mark in _FEATURES:
        names = tuple(visible(cut(str(name), _LINE)) for name in _list(finding.triage.get(key)))
        if names:
            yield FeatureList(term, mark, names)


def _variants(finding: Finding) -> Iterator[tuple[str, str, bool]]:
    for name, outcome in _map(finding.triage.get("variants")).items():
        yield visible(cut(str(name), _LINE)), visible(cut(_plain(outcome), _LINE)), outcome == "pass"


def _group(finding: Finding, folders: Mapping[str, Path]) -> Iterator[tuple[str, str]]:
    known = {folder.name for folder in folders.values()}
    for name in map(str, _list(finding.triage.get("group"))):
        yield visible(cut(name, _LINE)), _anchor(name) if name in known else ""


def _classes(finding: Finding) -> Iterator[ClassView]:
    found = _map(finding.triage.get("class"))
    reasons = _map(found.get("reasons"))
    for part in PARTS:
        if found.get(part):
            told = tuple(visible(cut(str(reason), _LINE)) for reason in _list(reasons.get(part)))
            yield ClassView(part.capitalize(), visible(cut(str(found[part]), _LINE)), told)


def _similar(finding: Finding) -> Iterator[SimilarView]:
    for item in map(_map, _list(finding.triage.get("similar"))):
        link = str(item.get("link", ""))
        score = item.get("score")
        if item.get("title"):
            yield SimilarView(
                visible(cut(f"#{item.get('number', '?')}", 20)),
                visible(cut(str(item["title"]), _LINE)),
                link if PLAIN_LINK.fullmatch(link) else "",
                f"{score:.2f}" if isinstance(score, (int, float)) else "",
            )


def _evidence(finding: Finding) -> Iterator[tuple[str, str]]:
    """How the finding was come by."""
    if finding.stage:
        yield "Stage", finding.stage
    if finding.attempts:
        yield "Confirmed", f"{finding.confirmations} of {finding.attempts} fresh processes"
    by = f", by {finding.engine}" if finding.engine else ""
    yield "First seen", f"run {finding.run}, after {duration(finding.seconds)}{by}"
    if finding.gates:
        yield "Checks", "; ".join(gate + ("" if said == "kept" else f": {said}") for gate, said in finding.gates)
    yield "Signature", finding.signature.major


def _errors(finding: Finding) -> Iterator[tuple[str, str]]:
    for stage, fault in _map(finding.facts.get("faults")).items():
        fault = _map(fault)
        text = f"{fault.get('type', '')}: {fault.get('message', '')}".strip(": \n")
        if text and text != finding.reason:
            yield str(stage), text


def _value(finding: Finding) -> ValueView | None:
    leaf = _map(next(iter(finding.facts.get("leaves") or ()), None))
    if not leaf:
        return None
    eager, compiled = _map(leaf.get("eager")), _map(leaf.get("compiled"))
    about = f"{leaf.get('path', '?')}" + (" (second call)" if leaf.get("second") else "")
    if eager:
        about += f" — {eager.get('dtype')} {_plain(eager.get('shape'))}"
    if isinstance(leaf.get("differing"), int) and leaf["differing"] > 0:
        about += f", {leaf['differing']} of {leaf.get('numel', '?')} elements differ"
    names = ("dtype", "shape", "stride", "offset", "requires_grad", "device")
    metadata = [
        (name, _plain(eager.get(name)), _plain(compiled.get(name)))
        for name in names
        if eager and compiled and eager.get(name) != compiled.get(name)
    ]
    if leaf.get("eager_text") or leaf.get("compiled_text"):
        metadata.append(("value", _plain(leaf.get("eager_text", "")), _plain(leaf.get("compiled_text", ""))))
    return ValueView(
        visible(cut(about, _LINE)),
        tuple((name, visible(cut(left, _LINE)), visible(cut(right, _LINE))) for name, left, right in metadata),
        tuple(_element(item) for item in leaf.get("worst") or ()),
    )


def _element(item: Mapping[str, Any]) -> Element:
    reference = item.get("reference", item.get("eager"))
    reference_text, eager, compiled = (visible(cut(_number(item.get(key)), 60)) for key in _SIDES)
    return Element(
        visible(_plain(item.get("index", ""))),
        reference_text,
        eager,
        compiled,
        heat=_heat(item.get("compiled"), reference),
        eager_heat=_heat(item.get("eager"), reference),
    )


def _heat(value: Any, reference: Any) -> int:
    """0 for an error below 1e-7 of the reference, a step for each factor of 100, 5 for 10 and more or another class."""
    try:
        got, true = complex(value), complex(reference)
    except (TypeError, ValueError):
        return 0 if value == reference else 5
    if not all(map(math.isfinite, (got.real, got.imag, true.real, true.imag))):
        return 0 if str(value) == str(reference) else 5
    error = abs(got - true) / max(abs(true), 1e-12)
    return 0 if error < 1e-7 else min(5, max(1, math.floor((math.log10(error) + 9) / 2)))


def _number(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.9g}"
    return "–" if value is None else str(value)


def _plain(value: Any) -> str:
    """Any plain data as one line."""
    if isinstance(value, Mapping):
        return "; ".join(f"{key}: {_plain(item)}" for key, item in value.items())
    if isinstance(value, (list, tuple)):
        numbers = all(isinstance(item, (int, float)) for item in value)
        text = ", ".join(_plain(item) for item in value)
        return f"[{text}]" if numbers else text
    return " ".join(_number(value).split())


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _tail(folder: Path | None, name: str, program: str) -> str:
    """What follows the program in the stored script; empty where that is not the program and something behind it."""
    if folder is None:
        return ""
    try:
        text = (folder / name).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    at = text.find(program)
    return text[at + len(program) :].strip("\n") if at >= 0 and len(text) <= _PROGRAM + _TAIL else ""


def _links(folder: Path, page_folder: Path) -> Iterator[tuple[str, str]]:
    """What a person opens first, then the folder."""
    base = Path(os.path.relpath(folder, page_folder))
    for name in ("report.md", "reduced.py", "repro.py", "finding.json"):
        if (folder / name).exists():
            yield name, quote((base / name).as_posix())
    yield "all files", quote(base.as_posix()) + "/"
