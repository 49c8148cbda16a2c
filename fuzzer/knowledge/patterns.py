"""Bug patterns and subgraphs: ``knowledge/patterns/*.toml`` and ``knowledge/subgraphs/*.toml``, one file a family.

A pattern says when a compiler tends to go wrong (trigger), how (action), and has a piece of program that does it in the
language of idioms. A subgraph is a piece of program of the kind that compilers fuse or match as a whole. Both are
entries for engines, prompts and people; a malformed one is named with file, key and remedy, and the others still load.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from fuzzer.engines import idiom
from fuzzer.engines.idiom import Idiom
from fuzzer.exits import UserError
from fuzzer.knowledge import trigger as triggers
from fuzzer.knowledge.families import KNOWLEDGE
from fuzzer.knowledge.trigger import Trigger
from fuzzer.program import Program

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: How a compiled program that follows a pattern is expected to differ from eager.
ORACLES = ("value", "gradient", "mutation", "metadata", "missing_check", "crash", "compile_error")

_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_PATTERN = {"id", "title", "trigger", "action", "oracle", "weight", "issues", "versions", "refused"}
_SUBGRAPH = {"id", "title", "about", "features", "weight"}


@dataclass(frozen=True)
class Pattern:
    """One way in which compilers tend to go wrong."""

    id: str
    title: str
    family: str  # name of its file
    trigger: Trigger
    action: str  # what the compiler tends to do wrong, and why
    template: Idiom
    oracle: str  # one of ORACLES
    weight: float = 1.0  # prior odds of mattering
    issues: tuple[int, ...] = ()  # numbers of pytorch/pytorch
    versions: tuple[str, ...] = ()  # of torch, on which a case of it was seen to fail
    refused: bool = False  # eager refuses the template: what is wrong is that compiled code accepts it
    kind: str = "pattern"

    @property
    def brings(self) -> tuple[str, ...]:
        """Features that its template certainly has: what every program with the trigger has."""
        return tuple(sorted(name for name in self.trigger.necessary if not name.startswith(("family=", "op="))))

    @property
    def words(self) -> str:
        return f"{self.title} {self.action}"


@dataclass(frozen=True)
class Subgraph:
    """A piece of dataflow that compilers treat as a whole; the slots are ``x``, its twin and the inputs."""

    id: str
    title: str
    family: str
    about: str  # what compilers do with it
    template: Idiom
    brings: tuple[str, ...] = ()  # features that it certainly has
    weight: float = 1.0
    refused: bool = False
    kind: str = "subgraph"

    @property
    def words(self) -> str:
        return f"{self.title} {self.about}"


Entry = Pattern | Subgraph


@dataclass(frozen=True)
class Loaded:
    """Entries in the order of files, and one line for each that was left out."""

    entries: tuple[Entry, ...]
    faults: tuple[str, ...] = ()


def load_patterns(folder: Path | None = None, strict: bool = False) -> Loaded:
    """All bug patterns. With ``strict`` the first malformed entry raises ``UserError``."""
    return _load(folder or KNOWLEDGE / "patterns", "pattern", _pattern, strict)


def load_subgraphs(folder: Path | None = None, strict: bool = False) -> Loaded:
    """All subgraphs. With ``strict`` the first malformed entry raises ``UserError``."""
    return _load(folder or KNOWLEDGE / "subgraphs", "subgraph", _subgraph, strict)


@lru_cache(maxsize=1)
def default_entries() -> tuple[Entry, ...]:
    """Patterns, then subgraphs, that ship; read once."""
    return load_patterns().entries + load_subgraphs().entries


def named_entries(program: Program) -> list[str]:
    """Ids of bug patterns and subgraphs that META names; a program from outside may hold anything there."""
    names = program.meta.get("knowledge", ())
    return [name for name in names if isinstance(name, str)] if isinstance(names, (list, tuple)) else []


def is_to_be_refused(program: Program) -> bool:
    """Was it written for eager to refuse, so that compiled code must refuse it as well?"""
    return bool(program.meta.get("refused")) or not _refused().isdisjoint(named_entries(program))


@lru_cache(maxsize=1)
def _refused() -> frozenset[str]:
    return frozenset(entry.id for entry in default_entries() if entry.refused)


def _load(folder: Path, kind: str, read: Callable[[Mapping[str, Any], str, str], Entry], strict: bool) -> Loaded:
    entries: dict[str, Entry] = {}
    faults: list[str] = []
    for where, family, table in _tables(folder, kind, faults):
        try:
            entry = read(table, family, where)
            if entry.id in entries:
                raise UserError(f"{where}.id: {entry.id!r} is taken by an entry before; choose another")
            entries[entry.id] = entry
        except UserError as error:
            faults.append(str(error))
    if strict and faults:
        raise UserError(faults[0])
    return Loaded(tuple(entries.values()), tuple(faults))


def _tables(folder: Path, kind: str, faults: list[str]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """(place for messages, family, table) of every entry; files that cannot be read become faults."""
    for path in sorted(folder.glob("*.toml")):
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            faults.append(f"{path}: cannot be read ({error.strerror}); restore the file")
            continue
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            faults.append(f"{path}: not valid TOML ({error}); mend the syntax")
            continue
        tables = data.get(kind)
        if not isinstance(tables, list) or set(data) - {kind}:
            faults.append(f"{path}: holds more or less than [[{kind}]] tables; write each entry as one")
            continue
        for number, table in enumerate(tables, 1):
            name = table.get("id", f"#{number}") if isinstance(table, Mapping) else f"#{number}"
            yield f"{path}: {name}", path.stem, table


def _pattern(table: Mapping[str, Any], family: str, where: str) -> Pattern:
    own = _own(table, _PATTERN, where)
    oracle = _text(own, "oracle", where)
    if oracle not in ORACLES:
        raise UserError(f"{where}.oracle: {oracle!r} is none; use one of {', '.join(ORACLES)}")
    return Pattern(
        id=_id(own, where),
        title=_text(own, "title", where),
        family=family,
        trigger=triggers.parse(_text(own, "trigger", where), f"{where}.trigger"),
        action=_text(own, "action", where),
        template=_template(table, where),
        oracle=oracle,
        weight=_weight(own, where),
        issues=tuple(_list(own, "issues", int, where)),
        versions=tuple(_list(own, "versions", str, where)),
        refused=bool(own.get("refused", False)),
    )


def _subgraph(table: Mapping[str, Any], family: str, where: str) -> Subgraph:
    own = _own(table, _SUBGRAPH, where)
    return Subgraph(
        id=_id(own, where),
        title=_text(own, "title", where),
        family=family,
        about=_text(own, "about", where),
        template=_template(table, where),
        brings=tuple(_list(own, "features", str, where)),
        weight=_weight(own, where),
    )


def _own(table: Mapping[str, Any], known: set[str], where: str) -> dict[str, Any]:
    if not isinstance(table, Mapping):
        raise UserError(f"{where}: not a table; write its keys below [[…]]")
    own = {key: value for key, value in table.items() if key not in idiom.KEYS}
    for key in own:
        if key not in known:
            raise UserError(f"{where}.{key}: unknown key; use {', '.join(sorted(known | idiom.KEYS))}")
    return own


def _template(table: Mapping[str, Any], where: str) -> Idiom:
    found = idiom.parse({key: value for key, value in table.items() if key in idiom.KEYS}, where)
    if not found.code and not found.meta:
        raise UserError(f"{where}.code: nothing that the engine could apply; write statements")
    return found


def _id(table: Mapping[str, Any], where: str) -> str:
    name = _text(table, "id", where)
    if not _ID.fullmatch(name):
        raise UserError(f"{where}.id: {name!r} is no id; use lower-case words joined by hyphens")
    return name


def _text(table: Mapping[str, Any], key: str, where: str) -> str:
    value = table.get(key)
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{where}.{key}: missing or no text; write a few words")
    return value.strip()


def _list(table: Mapping[str, Any], key: str, kind: type, where: str) -> list[Any]:
    value = table.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, kind) for item in value):
        raise UserError(f"{where}.{key}: not a list of {'numbers' if kind is int else 'texts'}; write [ … ]")
    return value


def _weight(table: Mapping[str, Any], where: str) -> float:
    value = table.get("weight", 1.0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= 10:
        raise UserError(f"{where}.weight: {value!r} is no number in (0, 10]; use about 1")
    return float(value)
