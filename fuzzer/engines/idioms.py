"""Idioms by feature: those of ``knowledge/idioms.toml``, joined by bug patterns and subgraphs under what they bring.

The language of one idiom is in ``idiom``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from fuzzer.engines.idiom import Idiom, Piece, parse, write
from fuzzer.exits import UserError
from fuzzer.knowledge.patterns import Entry, default_entries

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_PATH = Path(__file__).resolve().parents[2] / "knowledge" / "idioms.toml"


@dataclass(frozen=True)
class Knowledge:
    """Which sources the engines draw from: the one place where ablations switch them off."""

    patterns: bool = True
    subgraphs: bool = True
    neighbours: bool = True

    @classmethod
    def without(cls, names: Iterable[str]) -> Knowledge:
        """All but the named sources; ``knowledge`` names all of them. Raises ``UserError`` for a name that is none."""
        sources = tuple(cls.__dataclass_fields__)
        off: set[str] = set()
        for name in names:
            if name not in (*sources, "knowledge"):
                raise UserError(f"{name!r} is no source of knowledge; name of {', '.join((*sources, 'knowledge'))}")
            off.update(sources if name == "knowledge" else (name,))
        return cls(**{name: name not in off for name in sources})

    def entries(self) -> tuple[Entry, ...]:
        """Bug patterns and subgraphs that ship and are switched on."""
        on = {"pattern": self.patterns, "subgraph": self.subgraphs}
        return tuple(entry for entry in default_entries() if on[entry.kind])

    def idioms(self) -> Idioms:
        """The idioms that ship, with the entries that are switched on among them."""
        return Idioms.load().joined(self.entries())

    def mutations(self, names: Iterable[str]) -> tuple[str, ...]:
        """Of some mutations, those whose source is switched on."""
        off = {"apply_pattern": not self.patterns, "insert_subgraph": not self.subgraphs}
        return tuple(name for name in names if not off.get(name, False))


class Idioms:
    """All idioms, by feature id or ``group=NAME``."""

    def __init__(self, table: Mapping[str, Sequence[Idiom]], entries: Iterable[Entry] = ()) -> None:
        """``entries``: of knowledge, those with code. ``refused`` are the ones that eager must refuse, on which nothing
        can be built; ``subgraphs`` are taken whole."""
        self._table = {key: tuple(idioms) for key, idioms in table.items()}
        written = [entry for entry in entries if entry.template.code]
        self.refused = tuple(entry for entry in written if entry.refused)
        self.subgraphs = tuple(entry for entry in written if entry.kind == "subgraph")

    @classmethod
    def load(cls, path: Path | None = None) -> Idioms:
        """Read the table. Raises ``UserError`` naming the file, the entry and the remedy."""
        path = path or DEFAULT_PATH
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); reinstall, or restore the file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: not valid TOML ({error}); mend the syntax") from None
        return cls({key: [parse(entry, f"{path}: {key}[{i}]") for i, entry in enumerate(v)] for key, v in data.items()})

    def __contains__(self, key: object) -> bool:
        return key in self._table

    def of(self, key: str) -> tuple[Idiom, ...]:
        return self._table.get(key, ())

    def joined(self, entries: Iterable[Entry]) -> Idioms:
        """With entries of knowledge as further idioms of the features that they bring about.

        Only features that have idioms already: an entry is one more way to do what can be done anyway. What eager
        refuses is left out, since the engines build on what ran. The mode is the plan's to choose, not an idiom's.
        """
        table = {key: list(idioms) for key, idioms in self._table.items()}
        entries = list(entries)
        for entry in entries:
            for feature in entry.brings:
                if feature in table and entry.template.code and not entry.refused:
                    meta = {key: value for key, value in entry.template.meta.items() if key != "mode"}
                    table[feature].append(replace(entry.template, meta=meta, entry=entry.id))
        return Idioms(table, entries)

    @property
    def features(self) -> frozenset[str]:
        return frozenset(key for key in self._table if not key.startswith("group="))

    @property
    def groups(self) -> frozenset[str]:
        return frozenset(key.removeprefix("group=") for key in self._table if key.startswith("group="))


@lru_cache(maxsize=8)
def idioms_of(knowledge: Knowledge) -> Idioms:
    """``knowledge.idioms()``, read once."""
    return knowledge.idioms()


def default_idioms() -> Idioms:
    """All that ships, read once."""
    return idioms_of(Knowledge())


__all__ = ["DEFAULT_PATH", "Idiom", "Idioms", "Knowledge", "Piece", "default_idioms", "idioms_of", "write"]
