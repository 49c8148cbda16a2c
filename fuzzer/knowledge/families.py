"""Families of operators: the rules of ``knowledge/families.toml``, applied to any name of an operator."""

from __future__ import annotations

import functools
import re
import sys
from dataclasses import dataclass
from fnmatch import translate
from pathlib import Path

from fuzzer.exits import UserError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: The folder of knowledge that ships.
KNOWLEDGE = Path(__file__).resolve().parents[2] / "knowledge"

#: Where operators go that no rule knows.
OTHER = "other"
IN_PLACE = "in_place"

_PREFIX = re.compile(r"^(torch\.)?(ops\.)?(aten|prims|_prims|operator|nn\.functional|nn)[.:]+|^(torch\.)?(Tensor\.)?")
_NN = re.compile(r"^(torch\.)?nn\.")
_OVERLOADED = re.compile(r"^(torch\.)?(ops\.)?(aten|prims|_prims)[.:]+([^.]+)\.?(.*)$")


@dataclass(frozen=True)
class Family:
    """A set of operators that compilers treat alike. ``in_place``: also claims the in-place operators it matches."""

    id: str
    description: str  # natural language, for prompts
    rules: tuple[str, ...]
    in_place: bool = False

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(translate(rule) for rule in self.rules))


class Families:
    """All families in the order of their precedence."""

    def __init__(self, families: list[Family]) -> None:
        self.by_id = {family.id: family for family in families}
        self._cache: dict[tuple[str, str], str] = {}

    @classmethod
    def load(cls, path: Path | None = None) -> Families:
        """Read the rules. Raises ``UserError`` naming the file, the table and the remedy."""
        path = path or KNOWLEDGE / "families.toml"
        try:
            tables = tomllib.loads(path.read_text(encoding="utf-8"))["family"]
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); reinstall, or restore the file") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, KeyError) as error:
            raise UserError(f"{path}: no [[family]] tables ({error}); mend the file") from None
        found = []
        for number, table in enumerate(tables, 1):
            try:
                name, rules = str(table["id"]), tuple(map(str, table["rules"]))
                found.append(Family(name, str(table["description"]), rules, bool(table.get("in_place", False))))
            except (KeyError, TypeError):
                raise UserError(f"{path}: family {number} lacks one of id, description, rules; add it") from None
        return cls(found)

    def __len__(self) -> int:
        return len(self.by_id)

    def of(self, name: str, variant: str = "") -> str:
        """The id of an operator's family; ``other`` when no rule matches.

        Takes any spelling: ``nn.functional.relu``, ``linalg.det``, ``nn.Conv2d``, ``aten.add.Tensor``, ``add_``.
        """
        key = (name, variant)
        if key not in self._cache:
            self._cache[key] = self._find(name, variant)
        return self._cache[key]

    def _find(self, name: str, variant: str) -> str:
        spelled, in_place = spellings(name, variant)
        for family in self.by_id.values():
            if in_place and not family.in_place:
                continue
            if any(family.pattern.match(spelling) for spelling in spelled):
                return family.id
        return IN_PLACE if in_place else OTHER


def spellings(name: str, variant: str = "") -> tuple[list[str], bool]:
    """The texts that rules see (explained in ``families.toml``), and whether the operator is in place."""
    overloaded = _OVERLOADED.match(name)
    if overloaded:
        base, variant = overloaded[4], overloaded[5] or variant
    else:
        base = _PREFIX.sub("", name, count=1)
    base = base.replace(".", "_").lower()
    dunder = base.startswith("__") and base.endswith("__")
    in_place = base.endswith("_") and not dunder
    base = base.rstrip("_") if in_place else base
    texts = [base]
    if variant:
        texts.append(f"{base}.{variant.lower()}")
    if not dunder:
        texts += [text.lstrip("_").removeprefix("foreach_").removesuffix("_backward") for text in texts]
    if _NN.match(name):
        texts.append(f"nn_{base}")
    return texts, in_place
