"""What changed between two torch installs: operators, lowerings, decompositions, functions of the compiler.

"Test what is new": arms of what changed start with a raised prior. Pure but for ``read`` and ``write``; the two sides
come from ``inventory``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.knowledge.inventory import Inventory
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Pattern, default_entries
from fuzzer.store import atomic

#: Factors on the scores of arms: of an operator whose implementation changed, of a pattern that speaks of such one, and
#: what a family gets on top of 1 when all its operators changed. The schedule bounds them to 4.
_OPERATOR, _PATTERN, _FAMILY = 3.0, 2.0, 2.0
_FORMAT = 1


@dataclass(frozen=True)
class Part:
    """Names that one side lacks, and names of which both sides have another version."""

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()

    @classmethod
    def of(cls, old: Mapping[str, Any], new: Mapping[str, Any]) -> Part:
        return cls(
            added=tuple(sorted(new.keys() - old.keys())),
            removed=tuple(sorted(old.keys() - new.keys())),
            changed=tuple(sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
        )

    @property
    def here(self) -> tuple[str, ...]:
        """What the new side has, new or in another version."""
        return tuple(sorted({*self.added, *self.changed}))

    def __len__(self) -> int:
        return len(self.added) + len(self.removed) + len(self.changed)


@dataclass(frozen=True)
class Changes:
    """``old`` and ``new`` are versions. Names: ``aten.add.Tensor``, ``_inductor/lowering.py``,
    ``_inductor/lowering.py:cat``."""

    old: str = ""
    new: str = ""
    schemas: Part = field(default_factory=Part)
    lowerings: Part = field(default_factory=Part)
    decompositions: Part = field(default_factory=Part)
    fallbacks: Part = field(default_factory=Part)
    files: Part = field(default_factory=Part)
    functions: Part = field(default_factory=Part)

    @classmethod
    def between(cls, old: Inventory, new: Inventory) -> Changes:
        return cls(
            old.version,
            new.version,
            Part.of(old.schemas, new.schemas),
            Part.of(old.lowerings, new.lowerings),
            Part.of(old.decompositions, new.decompositions),
            Part.of(dict.fromkeys(old.fallbacks), dict.fromkeys(new.fallbacks)),
            Part.of(old.files, new.files),
            Part.of(old.functions, new.functions),
        )

    @property
    def parts(self) -> dict[str, Part]:
        return {item.name: getattr(self, item.name) for item in fields(self) if item.name not in ("old", "new")}

    @property
    def packets(self) -> frozenset[str]:
        """Operators, ``aten.add``, of which anything changed that the new side still has."""
        tables = (self.schemas, self.lowerings, self.decompositions, self.fallbacks)
        names = {name for part in tables for name in part.here} | set(self.fallbacks.removed)
        return frozenset(".".join(name.split(".")[:2]) for name in names)

    def factors(self, operators: Operators) -> dict[str, float]:
        """Arm → factor (above 1) on its score: operators, their families, patterns that name one of them."""
        packets = self.packets
        changed = [operator for operator in operators if packets & set(operator.aten)]
        found = {operator.key: _OPERATOR for operator in changed}
        names = {f"op={packet.partition('.')[2].strip('_')}" for packet in packets}
        for entry in default_entries():
            if isinstance(entry, Pattern) and names & entry.trigger.positive:
                found[entry.id] = _PATTERN
        shares = Counter(operator.family for operator in changed)
        for family, count in shares.items():
            share = count / len(operators.by_family[family])
            found[family] = max(found.get(family, 1.0), round(1.0 + _FAMILY * share, 3))
        return found

    def write(self, path: Path) -> None:
        """Raises ``UserError``: the file cannot be written."""
        try:
            atomic.write_text(path, json.dumps({"format": _FORMAT, **asdict(self)}, indent=1) + "\n")
        except OSError as error:
            raise UserError(f"{path}: cannot be written ({error.strerror}); choose another path") from None

    @classmethod
    def read(cls, path: Path) -> Changes:
        """What ``write`` wrote. Raises ``UserError`` for anything else, with the remedy."""
        remedy = f"make it with `eddy knowledge diff --old PYTHON --new PYTHON --out {path}`"
        try:
            data = json.loads(path.read_text(encoding="utf-8"))
            if data["format"] != _FORMAT:
                raise UserError(f"{path}: format {data['format']!r}, this Eddy reads {_FORMAT}; {remedy}")
            parts = {
                name: Part(**{key: tuple(map(str, value)) for key, value in data[name].items()}) for name in cls().parts
            }
            return cls(str(data["old"]), str(data["new"]), **parts)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); {remedy}") from None
        except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError, AttributeError) as error:
            raise UserError(f"{path}: no list of changes ({error!r}); {remedy}") from None


def by_folder(files: Iterable[str]) -> list[tuple[str, int]]:
    """(folder, number of files), the fullest first."""
    counts = Counter(str(Path(name).parent) for name in files)
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
