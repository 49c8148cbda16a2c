"""Known issues: what to call a failure that is reported already. Masked from the news, still counted and replayed."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.verdict import Kind

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The list that ships.
DEFAULT_PATH = Path(__file__).resolve().parent.parent / "knowledge" / "known_issues.toml"

_KEYS = frozenset({"id", "link", "title", "versions", "kinds", "match", "note"})
_MATCH_KEYS = frozenset({"ops_any", "ops_all", "dtypes", "cause", "text"})
_REQUIRED = ("id", "link", "title", "kinds", "match")

_RELEASE = re.compile(r"v?(\d+(?:\.\d+)*)")
_PRE_RELEASE = re.compile(r"[._-]?(?:a|b|rc|dev)\d*", re.IGNORECASE)
_CLAUSE = re.compile(r"(>=|<=|==|!=|>|<)?\s*v?(\d+(?:\.\d+)*)$")


@dataclass(frozen=True)
class KnownIssue:
    """One entry. All conditions that are given must hold; an empty one always holds.

    ``versions`` are alternatives, each a range such as ``>=2.5,<2.14``; none means every version. ``ops_any``
    and ``ops_all`` hold names (``aten.amin`` covers its overloads) or prefixes that end in ``*``. ``cause``
    and ``text`` are searched, not matched from the start.
    """

    id: str
    link: str
    title: str
    kinds: frozenset[Kind]
    versions: tuple[str, ...] = ()
    ops_any: tuple[str, ...] = ()
    ops_all: tuple[str, ...] = ()
    dtypes: frozenset[str] = frozenset()
    cause: re.Pattern[str] | None = None
    text: re.Pattern[str] | None = None
    note: str = ""

    def matches(
        self, kind: Kind, ops: Sequence[str], dtypes: Iterable[str], cause: str, text: str, torch_version: str
    ) -> bool:
        """Does a failure look like this issue? See ``KnownIssues.match``."""
        return (
            kind in self.kinds
            and (not self.versions or any(version_in(torch_version, item) for item in self.versions))
            and (not self.ops_any or any(_names(item, op) for item in self.ops_any for op in ops))
            and all(any(_names(item, op) for op in ops) for item in self.ops_all)
            and (not self.dtypes or not self.dtypes.isdisjoint(dtypes))
            and (self.cause is None or self.cause.search(cause) is not None)
            and (self.text is None or self.text.search(text) is not None)
        )


class KnownIssues:
    """The list, in the order of its file: the first entry that matches wins."""

    def __init__(self, issues: Sequence[KnownIssue], warnings: Sequence[str] = ()) -> None:
        self.issues = tuple(issues)
        self.warnings = list(warnings)

    @classmethod
    def load(cls, path: Path | None = None, strict: bool = False) -> KnownIssues:
        """Read a list; the one that ships by default.

        A malformed entry is left out and named in ``warnings``; with ``strict`` it raises ``UserError``, as a
        file that cannot be read or is not TOML always does.
        """
        path = path or DEFAULT_PATH
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            raise UserError(f"{path}: cannot be read ({error}); give a file of known issues") from None
        except tomllib.TOMLDecodeError as error:
            raise UserError(f"{path}: not valid TOML ({error}); mend that line") from None
        entries = data.get("issue", [])
        if not isinstance(entries, list):
            raise UserError(f"{path}: `issue` is not an array of tables; begin each entry with [[issue]]")
        issues: list[KnownIssue] = []
        warnings: list[str] = []
        for number, entry in enumerate(entries, 1):
            try:
                issues.append(_issue(entry))
            except ValueError as error:
                label = entry.get("id") if isinstance(entry, dict) else None
                message = f"{path}: entry {number} ({label or 'without id'}): {error}"
                if strict:
                    raise UserError(message) from None
                warnings.append(message)
        return cls(issues, warnings)

    def match(
        self,
        kind: Kind,
        ops: Sequence[str],
        dtypes: Iterable[str],
        cause: str,
        text: str,
        torch_version: str,
    ) -> KnownIssue | None:
        """The first known issue that a failure looks like, or None.

        Args:
            ops: operators that ran, ``aten.amin.default``.
            dtypes: dtypes that occurred, ``uint8``.
            cause: root cause or log of the failure.
            text: the program, best after reduction: the fewer operators, the surer the match.
            torch_version: as torch says it, ``2.13.0+cpu``. One without a number satisfies no range.
        """
        present = frozenset(dtypes)
        for issue in self.issues:
            if issue.matches(kind, ops, present, cause, text, torch_version):
                return issue
        return None


def _names(item: str, op: str) -> bool:
    return op.startswith(item[:-1]) if item.endswith("*") else op == item or op.startswith(item + ".")


def version_in(version: str, wanted: str) -> bool:
    """Does a torch version satisfy a range: clauses such as ``>=2.5`` joined by commas, all of which must hold?

    A bare version, ``==`` and ``!=`` compare as many parts as are written (``2.13`` covers 2.13.1), the
    others pad with zeros (2.14.1 is above ``<=2.14``). Pre-releases (``2.14.0.dev…``, ``a0+git…``) come
    before their release; local parts (``+cpu``) do not count. Raises ``ValueError`` for a range that is not
    one.
    """
    key = _version_key(version)
    return all(_clause_holds(key, clause.strip()) for clause in wanted.split(","))


def _version_key(version: str) -> tuple[tuple[int, ...], int] | None:
    found = _RELEASE.match(version.strip())
    if not found:
        return None
    release = tuple(int(part) for part in found.group(1).split("."))
    rest = version.strip()[found.end() :].split("+")[0]
    return release, -1 if _PRE_RELEASE.match(rest) else 0


def _clause_holds(key: tuple[tuple[int, ...], int] | None, clause: str) -> bool:
    found = _CLAUSE.match(clause)
    if not found:
        raise ValueError(f"{clause!r} is no version range; write e.g. '>=2.5' or '>=2.5,<2.14'")
    if key is None:
        return False
    operator, bound = found.group(1) or "==", tuple(int(part) for part in found.group(2).split("."))
    release, rank = key
    if operator in ("==", "!="):
        return (_padded(release, len(bound))[: len(bound)] == bound) is (operator == "==")
    width = max(len(release), len(bound))
    left, right = (_padded(release, width), rank), (_padded(bound, width), 0)
    return {">=": left >= right, "<=": left <= right, ">": left > right, "<": left < right}[operator]


def _padded(release: tuple[int, ...], width: int) -> tuple[int, ...]:
    return release + (0,) * (width - len(release))


def _issue(entry: Any) -> KnownIssue:
    """One entry, checked. Raises ``ValueError`` naming the key and the remedy."""
    if not isinstance(entry, dict):
        raise ValueError("not a table; begin each entry with [[issue]]")
    _refuse_unknown(entry, _KEYS, "")
    for key in _REQUIRED:
        if not entry.get(key):
            raise ValueError(f"`{key}` is missing or empty; add it")
    match = entry["match"]
    if not isinstance(match, dict):
        raise ValueError("`match` is not a table; write [issue.match]")
    _refuse_unknown(match, _MATCH_KEYS, "match.")
    if not any(match.values()):
        raise ValueError("`match` has no condition and would hide every failure; add ops_any, cause or text")
    versions = _strings(entry, "versions")
    for item in versions:
        try:
            version_in("1.0", item)
        except ValueError as error:
            raise ValueError(f"`versions`: {error}") from None
    return KnownIssue(
        id=_string(entry, "id"),
        link=_string(entry, "link"),
        title=_string(entry, "title"),
        kinds=frozenset(_kind(word) for word in _strings(entry, "kinds")),
        versions=versions,
        ops_any=_strings(match, "ops_any"),
        ops_all=_strings(match, "ops_all"),
        dtypes=frozenset(_strings(match, "dtypes")),
        cause=_pattern(match, "cause"),
        text=_pattern(match, "text"),
        note=_string(entry, "note"),
    )


def _refuse_unknown(table: Mapping[str, Any], allowed: frozenset[str], prefix: str) -> None:
    for key in table:
        if key not in allowed:
            raise ValueError(f"`{prefix}{key}` is no key; use {', '.join(sorted(allowed))}")


def _kind(word: str) -> Kind:
    try:
        kind = Kind(word)
    except ValueError:
        kind = Kind.PASS
    if not kind.is_fault:
        faults = ", ".join(item.value for item in Kind if item.is_fault)
        raise ValueError(f"`kinds` has {word!r}; use {faults}")
    return kind


def _string(table: Mapping[str, Any], key: str) -> str:
    value = table.get(key, "")
    if not isinstance(value, str):
        raise ValueError(f"`{key}` is {value!r}; write a string")
    return value


def _strings(table: Mapping[str, Any], key: str) -> tuple[str, ...]:
    value = table.get(key, [])
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not all(isinstance(item, str) and item for item in value):
        raise ValueError(f"`{key}` is {value!r}; write a list of strings")
    return tuple(value)


def _pattern(table: Mapping[str, Any], key: str) -> re.Pattern[str] | None:
    text = _string(table, key)
    try:
        return re.compile(text) if text else None
    except re.error as error:
        raise ValueError(f"`match.{key}` is no regular expression ({error}); mend it") from None
