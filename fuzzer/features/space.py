"""The feature space: dimensions and their values, read from ``knowledge/features.toml``.

A feature is a (dimension, value) pair with the id ``"dimension=value"``. An entry says in words what the feature is
(for prompts), how generation brings it about, and which detector recognises it: a group of words filled by
``detect_text`` or ``detect_run``, and the words that count. Adding a feature whose word is already reported takes one
line of data and no code.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.features.detect_run import RUN_DETECTORS
from fuzzer.features.detect_text import TEXT_DETECTORS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

DEFAULT_PATH = Path(__file__).resolve().parents[2] / "knowledge" / "features.toml"

#: Detector → every word it can report; None where the vocabulary is open.
DETECTORS: dict[str, frozenset[str] | None] = {
    **TEXT_DETECTORS,
    **RUN_DETECTORS,
    # a word of its own from the combination of both sources
    "mechanism": (RUN_DETECTORS["mechanism"] or frozenset())
    | TEXT_DETECTORS["text_mechanism"]
    | {"view_mutation_break"},
}


@dataclass(frozen=True)
class Feature:
    """One property of a program that may matter for bugs."""

    dimension: str
    value: str
    description: str  # natural language, completes "a program with …"
    how: str  # how generation brings it about, in words
    detector: str  # key of ``DETECTORS``
    arguments: tuple[str, ...]  # realised when the detector reports any of these words
    weight: float = 1.0  # prior share among the values of its dimension
    excludes: tuple[str, ...] = ()  # ids that cannot hold in the same program

    @property
    def id(self) -> str:
        return f"{self.dimension}={self.value}"


@dataclass(frozen=True)
class Dimension:
    """One axis of the space. ``exclusive``: a program has at most one of its values."""

    name: str
    description: str
    exclusive: bool
    weight: float  # prior share among dimensions
    sampled: bool  # False: recognised and credited, but asked for by other means (families are arms of their own)
    values: tuple[Feature, ...]


class FeatureSpace:
    """All dimensions. Immutable once loaded."""

    def __init__(self, dimensions: tuple[Dimension, ...], group_of: Mapping[str, str], source: str) -> None:
        self.dimensions: dict[str, Dimension] = {dimension.name: dimension for dimension in dimensions}
        self.features: dict[str, Feature] = {
            feature.id: feature for dimension in dimensions for feature in dimension.values
        }
        self.group_of: dict[str, str] = dict(group_of)
        self.source = source
        by_detector: dict[tuple[str, str], list[str]] = {}
        for feature in self.features.values():
            for word in feature.arguments:
                by_detector.setdefault((feature.detector, word), []).append(feature.id)
        self.by_detector: dict[tuple[str, str], tuple[str, ...]] = {key: tuple(ids) for key, ids in by_detector.items()}
        self._excluded: dict[str, set[str]] = {}
        for feature in self.features.values():
            for other in feature.excludes:
                self._excluded.setdefault(feature.id, set()).add(other)
                self._excluded.setdefault(other, set()).add(feature.id)
        self.validate()

    @classmethod
    def load(cls, path: Path | str | None = None) -> FeatureSpace:
        """Read the space.

        Raises:
            UserError: unreadable or malformed; names the file, the key and the remedy.
        """
        file = Path(path) if path is not None else DEFAULT_PATH
        try:
            data = tomllib.loads(file.read_text(encoding="utf-8"))
        except OSError as error:
            raise UserError(f"{file}: cannot be read ({error.strerror}); give an existing features file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise UserError(f"{file}: not valid TOML ({error}); mend the syntax") from None
        return cls(*_read(data, str(file)), str(file))

    def describe(self, feature: str) -> str:
        """One line for a prompt. Raises ``UserError`` for an unknown id."""
        return self._get(feature).description

    def compatible(self, left: str, right: str) -> bool:
        """Whether one program can have both features."""
        if left == right:
            return True
        if right in self._excluded.get(left, ()):
            return False
        a, b = self._get(left), self._get(right)
        return a.dimension != b.dimension or not self.dimensions[a.dimension].exclusive

    def families_of_group(self, group: str) -> list[str]:
        """Families whose operators count as this group in adjacency."""
        return [family for family, name in self.group_of.items() if name == group]

    def validate(self) -> None:
        """Check what only the whole can show: detectors, their words, exclusions, edges between known groups.

        Raises:
            UserError: the first fault found.
        """
        groups = set(self.group_of.values())
        for feature in self.features.values():
            where = f"{self.source}: dimension.{feature.dimension}.values.{feature.value}"
            if feature.detector not in DETECTORS:
                raise UserError(f"{where}: no detector {feature.detector!r}; use one of {', '.join(sorted(DETECTORS))}")
            known = DETECTORS[feature.detector]
            for word in feature.arguments:
                if known is not None and word not in known:
                    raise UserError(
                        f"{where}: detector {feature.detector!r} never reports {word!r}; "
                        f"it reports {', '.join(sorted(known))}"
                    )
                if feature.detector == "adjacency" and not set(word.split(">")) <= groups:
                    raise UserError(f"{where}: {word!r} is no edge between groups; groups: {', '.join(sorted(groups))}")
            for other in feature.excludes:
                if other not in self.features:
                    raise UserError(f"{where}: excludes {other!r}, which is no feature; write an existing id")

    def _get(self, feature: str) -> Feature:
        try:
            return self.features[feature]
        except KeyError:
            raise UserError(f"{feature!r} is no feature of {self.source}; ids read dimension=value") from None


# --- reading ------------------------------------------------------------------------------------------------------


def _read(data: Mapping[str, Any], source: str) -> tuple[tuple[Dimension, ...], dict[str, str]]:
    unknown = set(data) - {"dimension", "group"}
    if unknown:
        raise UserError(f"{source}: {sorted(unknown)[0]}: unknown table; use [dimension.NAME] or [group]")
    group_of: dict[str, str] = {}
    for group, families in _table(data, "group", source).items():
        if not isinstance(families, list) or not all(isinstance(family, str) for family in families):
            raise UserError(f'{source}: group.{group}: not a list of family names; write ["name", …]')
        for family in families:
            if group_of.setdefault(family, group) != group:
                raise UserError(f"{source}: group.{group}: family {family!r} is in {group_of[family]!r} too; keep one")
    dimensions = _table(data, "dimension", source)
    if not dimensions:
        raise UserError(f"{source}: dimension: no dimension at all; add [dimension.NAME] with values")
    return tuple(_dimension(name, _table(dimensions, name, source), source) for name in dimensions), group_of


def _table(data: Mapping[str, Any], key: str, source: str) -> Mapping[str, Any]:
    value = data.get(key, {})
    if not isinstance(value, Mapping):
        raise UserError(f"{source}: {key}: not a table; write [{key}] or {key} = {{ … }}")
    return value


def _field(entry: Mapping[str, Any], key: str, kind: type | tuple[type, ...], default: Any, where: str) -> Any:
    value = entry.get(key, default)
    if value is None:
        raise UserError(f"{where}: no `{key}`; add one")
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise UserError(f"{where}.{key}: {value!r} has the wrong type; see the other entries")
    if isinstance(value, str) and not value.strip():
        raise UserError(f"{where}.{key}: empty; write a few words")
    return value


def _known_keys(entry: Mapping[str, Any], known: set[str], where: str) -> None:
    for key in entry:
        if key not in known:
            raise UserError(f"{where}.{key}: unknown key; use {', '.join(sorted(known))}")


def _weight(entry: Mapping[str, Any], where: str) -> float:
    weight = float(_field(entry, "weight", (int, float), 1.0, where))
    if not 0 < weight <= 10:
        raise UserError(f"{where}.weight: {weight} is outside (0, 10]; use about 1")
    return weight


def _dimension(name: str, entry: Mapping[str, Any], source: str) -> Dimension:
    where = f"{source}: dimension.{name}"
    _known_keys(entry, {"description", "exclusive", "weight", "sampled", "detector", "values"}, where)
    detector = _field(entry, "detector", str, name, where)
    values = _table(entry, "values", where)
    if not values:
        raise UserError(f"{where}: no values; add [dimension.{name}.values]")
    return Dimension(
        name=name,
        description=_field(entry, "description", str, None, where),
        exclusive=_field(entry, "exclusive", bool, False, where),
        weight=_weight(entry, where),
        sampled=_field(entry, "sampled", bool, True, where),
        values=tuple(
            _feature(name, value, _table(values, value, f"{where}.values"), detector, where) for value in values
        ),
    )


def _feature(dimension: str, value: str, entry: Mapping[str, Any], detector: str, where: str) -> Feature:
    where = f"{where}.values.{value}"
    _known_keys(entry, {"description", "how", "detector", "arguments", "weight", "excludes"}, where)
    lists: dict[str, tuple[str, ...]] = {}
    for key, default in (("arguments", [value]), ("excludes", [])):
        items = _field(entry, key, list, default, where)
        if not all(isinstance(item, str) for item in items):
            raise UserError(f'{where}.{key}: holds more than strings; write ["word", …]')
        lists[key] = tuple(items)
    if not lists["arguments"]:
        raise UserError(f"{where}.arguments: empty, so nothing could realise it; name a word")
    return Feature(
        dimension=dimension,
        value=value,
        description=_field(entry, "description", str, None, where),
        how=_field(entry, "how", str, None, where),
        detector=_field(entry, "detector", str, detector, where),
        arguments=lists["arguments"],
        weight=_weight(entry, where),
        excludes=lists["excludes"],
    )
