"""A campaign as the live page needs it: read when it changed, and labelled. Takes no lock but that of the labels."""

from __future__ import annotations

import hashlib
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Any

from fuzzer.labels import Judgement, Label
from fuzzer.page.campaign import PLOTTED, CampaignData, read_campaign
from fuzzer.page.render import Live, page
from fuzzer.page.series import read_plot
from fuzzer.severity import by_severity
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.labels import LabelStore
from fuzzer.store.stats import read_status
from fuzzer.web.app import Document, Refused, Wish

#: Takes a label back, as in ``eddy triage label``.
NONE = "none"

#: Reading what the loop learnt replays the journal: about a second for each hour of a campaign. It may take this share
#: of the time of one core, and is not repeated within so many seconds; findings and labels are shown at once.
_SHARE, _LEAST_SECONDS = 0.05, 30.0

#: Of a file that is shown.
_MAX_FILE = 8 << 20


@dataclass(frozen=True)
class _Read:
    """What was read, and the state of the files at that time. ``at`` and ``seconds``: when all of it was read at last,
    and how long that took."""

    data: CampaignData
    findings: str  # of findings and labels
    numbers: str  # of everything else
    at: float
    seconds: float


class CampaignSite:
    """Implements ``app.Site``. May be used by several threads. ``clock`` gives seconds, for tests."""

    def __init__(self, directory: CampaignDirectory, clock: Callable[[], float] = time.monotonic) -> None:
        self.directory = directory
        self.clock = clock
        self._lock = threading.Lock()  # of all below
        self._labelling = threading.Lock()
        self._read: _Read | None = None
        self._document: Document | None = None

    def page(self) -> Document:
        """The page, rendered anew only when something changed."""
        with self._lock:
            read = self._fresh()
            tag = _digest(read.findings, read.numbers)
            if self._document is None or self._document.tag != tag:
                news = self._news()
                text = page(read.data, self.directory.path, live=_live(news))
                self._document = Document(text, _policy(text), tag)
            return self._document

    def stats(self) -> dict[str, Any]:
        """What ``eddy status --json`` says, and ``page``: when that changes, there are new findings or labels."""
        return {**read_status(self.directory), "page": self._news()}

    def label(self, wish: Wish) -> dict[str, Any]:
        """Store a label as ``eddy triage label`` does; the answer is the finding's label as it is now."""
        store = FindingStore(self.directory)
        majors = {folder.name: item.signature.major for item in store.load_all() if (folder := store.folder(item))}
        major = _known(majors, wish.id)
        if wish.label not in (NONE, *(item.value for item in Label)):
            raise Refused(f"{wish.label!r} is no label")
        if (wish.label == Label.DUPLICATE_OF.value) != bool(wish.of):
            raise Refused("a duplicate names the finding that it repeats, and no other label does")
        of = _known(majors, wish.of) if wish.of else ""
        with self._labelling:
            try:
                if wish.label == NONE:
                    labels = LabelStore(self.directory).change(lambda present: present.without(major))
                else:
                    judgement = Judgement(Label(wish.label), of, " ".join(wish.why.split()), int(time.time()))
                    labels = LabelStore(self.directory).change(lambda present: present.with_label(major, judgement))
            except ValueError as error:
                raise Refused(f"{wish.id}: {error}") from None
        now = labels.get(major)
        return {
            "id": wish.id,
            "label": now.label.value if now else "",
            "of": wish.of if now else "",
            "why": now.why if now else "",
            "page": self.stats()["page"],
        }

    def close(self) -> None:
        """Wait until a label that is being stored is on disk; none is stored after."""
        self._labelling.acquire()

    def file(self, parts: Sequence[str]) -> bytes | None:
        path = self._inside(parts)
        if path is None or len(parts) < 2 or not path.is_file():
            return None
        with open(path, "rb") as stream:
            return stream.read(_MAX_FILE)

    def names(self, parts: Sequence[str]) -> list[str] | None:
        path = self._inside(parts)
        if path is None or not path.is_dir():
            return None
        entries = [entry for entry in os.scandir(path) if not entry.name.startswith(".")]
        return sorted(entry.name + ("/" if entry.is_dir() else "") for entry in entries)

    def _inside(self, parts: Sequence[str]) -> Path | None:
        """The path below one of the folders of findings, links followed, or None where it leads out of it."""
        roots = {root.name: root for root in self._roots()}
        if not parts or parts[0] not in roots or any(set(part) & {"/", "\0"} or part.startswith(".") for part in parts):
            return None
        root = roots[parts[0]].resolve()
        path = root.joinpath(*parts[1:]).resolve()
        return path if path.is_relative_to(root) and path.exists() else None

    def _roots(self) -> tuple[Path, ...]:
        return (self.directory.findings, self.directory.flaky, self.directory.hangs)

    def _finding_files(self) -> Iterator[Path]:
        for root in self._roots():
            if root.is_dir():
                yield from sorted(Path(entry.path, "finding.json") for entry in os.scandir(root) if entry.is_dir())

    def _news(self) -> str:
        """Changes with a new finding, one that moved, and a label; not with one more program of a known finding."""
        return _digest(*map(str, self._finding_files()), _stamp([self.directory.labels]))

    def _fresh(self) -> _Read:
        """What the campaign's files say now; what the loop learnt may be somewhat older (see ``_SHARE``)."""
        findings = _stamp([*self._finding_files(), self.directory.labels])
        numbers = _stamp([self.directory.fuzzer_stats, self.directory.plot_data, self.directory.events])
        numbers = _digest(numbers, str(read_status(self.directory)["pid"]))
        old, started = self._read, self.clock()
        if old is None or (old.numbers != numbers and started >= old.at + max(_LEAST_SECONDS, old.seconds / _SHARE)):
            data = read_campaign(self.directory.path)
            now = self.clock()
            self._read = _Read(data, findings, numbers, now, now - started)
        elif old.findings != findings:
            self._read = replace(old, data=self._with_findings(old.data), findings=findings)
        assert self._read is not None
        return self._read

    def _with_findings(self, data: CampaignData) -> CampaignData:
        """Everything but what the loop learnt, read anew."""
        store = FindingStore(self.directory)
        found = by_severity(store.load_all())
        return replace(
            data,
            findings=tuple(found),
            folders={item.signature.major: folder for item in found if (folder := store.folder(item))},
            labels=LabelStore(self.directory).read(),
            status=read_status(self.directory),
            series=read_plot(self.directory.plot_data, PLOTTED),
        )


def _known(majors: dict[str, str], name: str) -> str:
    if name not in majors:
        raise Refused(f"no finding {name!r}; it may have moved, refresh the page")
    return majors[name]


def _policy(text: str) -> str:
    """What the page itself allows in its ``meta`` element, and what only a header can say."""
    found = re.search(r'"Content-Security-Policy" content="([^"]*)"', text)
    assert found is not None
    return f"{found[1]}; frame-ancestors 'none'"


def _live(tag: str) -> Live:
    assets = resources.files("fuzzer.web") / "assets"
    style, script, markup = ((assets / f"live.{kind}").read_text(encoding="utf-8") for kind in ("css", "js", "html"))
    return Live(style, script, markup.replace("{page}", tag))


def _stamp(paths: Iterable[Path]) -> str:
    """Digest of names, sizes and times of change; of what is not there, that it is not."""
    lines = []
    for path in paths:
        try:
            seen = path.stat()
            lines.append(f"{path}\0{seen.st_size}\0{seen.st_mtime_ns}")
        except OSError:
            lines.append(f"{path}\0absent")
    return _digest(*lines)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0\0".join(texts).encode("utf-8", "surrogateescape")).hexdigest()[:20]
