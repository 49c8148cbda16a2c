"""What the compiler says about itself: its counters, its graph breaks, the kernels that it generated."""

from __future__ import annotations

import re
import sys
import zlib
from collections.abc import Callable, Iterable
from typing import Any

from harness.coverage import kernels as kernel_text

#: More distinct counters than this come from one program only when names leak into keys.
_MOST_KEYS = 200
#: Texts kept a child; a program that recompiles for ever must not fill the memory.
_MOST_TEXTS = 256
_LONGEST_KEY = 120
_MOST_SOURCES, _LONGEST_SOURCE = 16, 8000

#: Categories of ``counters`` whose keys are names of the program's own functions: only their sum is kept.
_NAMES = ("resumes",)
_BREAKS = ("graph_break", "unimplemented")

#: Applied in order to the first line of a key: what differs between two programs with one cause.
_NORMALISE: tuple[tuple[re.Pattern[str], str], ...] = (
    (re.compile(r"0x[0-9a-fA-F]+"), "ADDR"),
    (re.compile(r"(?:/[\w.+-]+)+\.\w+(?:[:,]\s*(?:line\s*)?\d+)?"), "FILE"),
    (re.compile(r"'[^']*'|\"[^\"]*\"|`[^`]*`"), "NAME"),
    (re.compile(r"\((?:[^()]|\([^()]*\))*\)|\[[^\[\]]*\]|\{[^{}]*\}"), "(…)"),
    (re.compile(r"\b[suz]\d+\b|(?<=_)[suz]\d+|(?<=\*)[suz]\d+"), "S"),  # sizes that are symbols
    (re.compile(r"(?<![A-Za-z\d])\d+(?:\.\d+)?"), "N"),
    (re.compile(r"\s+"), " "),
)

_captured: list[str] = []


class CompilerEvents:
    """Counters and kernels of one child. Nothing is patched but Inductor's own hook for generated code."""

    name = "events"

    def capture_kernels(self) -> None:
        """In the server, once, after torch is imported: keep the text of generated code from now on.

        Uses ``GraphLowering.save_output_code``, which Inductor calls with each graph's finished code before any C++
        or Triton compiler runs; a hook that was there is still called. Does nothing where the hook is missing.
        """
        from torch._inductor.graph import GraphLowering

        if not hasattr(GraphLowering, "save_output_code"):
            return
        former: Callable[[str], None] | None = GraphLowering.save_output_code
        if getattr(former, "captures_kernels", False):
            return

        def keep(text: str) -> None:
            if len(_captured) < _MOST_TEXTS:
                _captured.append(text)
            if former is not None:
                former(text)

        keep.captures_kernels = True  # type: ignore[attr-defined]
        GraphLowering.save_output_code = staticmethod(keep)

    def child_start(self) -> None:
        """In the child: forget what the server's own warm-up generated."""
        _captured.clear()

    def captured(self) -> list[str]:
        """Texts of the code generated in this process since ``child_start``, at most 256."""
        return list(_captured)

    def kernel_classes(self, texts: Iterable[str]) -> list[str]:
        """See ``harness.coverage.kernels.kernel_classes``."""
        return kernel_text.kernel_classes(texts)

    def collect(self) -> dict[str, int]:
        """``torch._dynamo.utils.counters`` of this process, flat: ``inductor.pattern_matcher_count`` -> count.

        Keys carry no address, number or name of the program; reasons of graph breaks are their first line. Empty
        when Dynamo was not loaded. At most 200 keys, graph breaks before all others.
        """
        utils = sys.modules.get("torch._dynamo.utils")
        return flatten(utils.counters) if utils is not None else {}

    def ids(
        self, counters: Iterable[str], kernels: Iterable[str] = ()
    ) -> tuple[dict[str, list[int]], dict[str, dict[int, str]]]:
        """Coverage of the domain ``events``: category -> ids, ascending, and category -> id -> text to store.

        Categories are ``counter``, ``break`` and ``kernel``; an id is the CRC-32 of the key, stable for ever.
        """
        texts: dict[str, dict[int, str]] = {}
        for key in counters:
            category = "break" if key.partition(".")[0] in _BREAKS else "counter"
            texts.setdefault(category, {})[zlib.crc32(key.encode())] = key
        for kernel in kernels:
            texts.setdefault("kernel", {})[zlib.crc32(kernel.encode())] = kernel
        return {category: sorted(named) for category, named in texts.items()}, texts


def on_sources(tell: Callable[[list[str]], None]) -> None:
    """In a child, before it compiles: call ``tell`` with the kernels generated so far whenever there are more.

    See ``harness.coverage.kernels.kernel_sources``; at most 16, each cut at 8,000 characters.
    """
    from torch._inductor.graph import GraphLowering

    former: Callable[[str], None] | None = getattr(GraphLowering, "save_output_code", None)
    texts: list[str] = []

    def keep(text: str) -> None:
        texts.append(text)
        tell([source[:_LONGEST_SOURCE] for source in kernel_text.kernel_sources(texts)[:_MOST_SOURCES]])
        if former is not None:
            former(text)

    GraphLowering.save_output_code = staticmethod(keep)


def flatten(counters: Any) -> dict[str, int]:
    """Counters of counters as one flat map; see ``CompilerEvents.collect``. Keys that normalise alike are summed."""
    flat: dict[str, int] = {}
    for category, counts in counters.items():
        for name, count in counts.items():
            key = str(category) if category in _NAMES else f"{category}.{normalise(str(name))}"
            flat[key] = flat.get(key, 0) + int(count)
    first = sorted(flat, key=lambda key: (key.partition(".")[0] not in _BREAKS, key))
    return {key: flat[key] for key in first[:_MOST_KEYS]}


def normalise(reason: str) -> str:
    """The first line of a counter's key without addresses, files, quoted names, arguments and numbers."""
    line = next((line for line in reason.splitlines() if line.strip()), "").strip()
    for pattern, replacement in _NORMALISE:
        line = pattern.sub(replacement, line)
    return line[:_LONGEST_KEY]
