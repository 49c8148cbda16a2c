"""One idiom: a short piece of program with placeholders (the language is explained in ``knowledge/idioms.toml``).

``parse`` reads an entry of a table, ``write`` fills it in for one tensor; whether the result runs a probe must say.
"""

from __future__ import annotations

import ast
import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from fuzzer.exits import UserError

#: Keys of an idiom in a table.
KEYS = frozenset({"on", "code", "inputs", "helper", "meta", "returns", "scoped"})

#: Names that an idiom binds or takes; ``p`` and ``q``, functions and classes keep theirs.
_NAMES = re.compile(r"(?<![\w.\"'])([xyrstuvwkm])(?![\w\"'])")
_LOCALS = frozenset("rstu")
_PARAMETERS = re.compile(
    r"\b(NUMEL|RANK|SIZES|SHAPE|DIM|ROW|COL|CHANNELS|DTYPE|HALF|FLOATD|INTD|N|M)\b"
)  # longest first where one begins another
_INTEGERS = ("int8", "int16", "int32", "int64", "uint8")
_HALVES = ("float16", "bfloat16")
_WIDE = ("float32", "float64")
_KINDS: Mapping[str, tuple[str, ...]] = {
    "float": (*_WIDE, *_HALVES), "wide": _WIDE, "half": _HALVES, "int": _INTEGERS, "bool": ("bool",),
    "real": (*_WIDE, *_HALVES, *_INTEGERS), "complex": ("complex64", "complex128"),
    "any": (*_WIDE, *_HALVES, *_INTEGERS, "bool", "complex64", "complex128"),
    "float32": ("float32",), "int64": ("int64",),
}  # fmt: skip
_RANKS = {"scalar": 0, "vector": 1, "matrix": 2, "cube": 3, "image": 4}
_LEAST = {"rank1": 1, "rank2": 2, "rank3": 3}
_WORDS = {*_KINDS, *_RANKS, *_LEAST, "empty", "solid", "made", "input"}
#: Shapes of a tensor made for an idiom, per rank: small, no two sizes equal, so that mixed-up dimensions show.
_SHAPES: Mapping[int, tuple[tuple[int, ...], ...]] = {
    0: ((),), 1: ((5,), (8,), (17,)), 2: ((3, 4), (4, 7), (6, 5), (2, 16)), 3: ((2, 3, 8), (3, 4, 5), (2, 5, 7)),
    4: ((2, 3, 8, 6), (3, 4, 7, 5), (2, 2, 9, 8)),
}  # fmt: skip


@dataclass(frozen=True)
class Idiom:
    """One way to bring a feature about. ``on``: what ``x`` must be; ``code`` may be empty (only META changes)."""

    on: frozenset[str]
    code: str
    inputs: Mapping[str, str] = field(default_factory=dict)
    helper: str = ""
    meta: Mapping[str, Any] = field(default_factory=dict)
    returns: str = ""  # "dict": as a dictionary; "kept": the result, whether read again or not
    scoped: bool = False  # holds only inside a function (nonlocal)
    entry: str = ""  # id of the bug pattern or subgraph that it is

    @property
    def dtypes(self) -> tuple[str, ...]:
        return next((_KINDS[word] for word in sorted(self.on) if word in _KINDS), _KINDS["float"])

    @property
    def needs_twin(self) -> bool:
        return "y" in _NAMES.findall(self.code)

    def fits(self, dtype: str, shape: Sequence[int], made: bool) -> bool:
        """May ``x`` be such a tensor? ``made``: it is the result of a statement, no input."""
        if dtype not in self.dtypes or (0 in shape) != ("empty" in self.on):
            return False
        if "solid" in self.on and 1 in shape:
            return False
        if ("made" in self.on and not made) or ("input" in self.on and made):
            return False
        least, most = self.ranks()
        return least <= len(shape) <= most

    def ranks(self) -> tuple[int, int]:
        """Least and greatest rank of ``x``."""
        exact = [_RANKS[word] for word in self.on if word in _RANKS]
        least = max((_LEAST.get(word, 0) for word in self.on), default=0)
        return (exact[0], exact[0]) if exact else (least, 99)

    def adapter(self, dtype: str, shape: Sequence[int]) -> tuple[str, str, tuple[int, ...]] | None:
        """(expression with ``{}`` for a tensor, dtype, shape) that makes of some tensor one that fits; None: cannot."""
        if 0 in shape or self.on & {"empty", "made", "input"}:
            return None
        text, shape = "{}", tuple(shape)
        least, most = self.ranks()
        if len(shape) < least:
            solid = "solid" in self.on or not shape
            new = (*((2 if solid else 1,) * (least - len(shape))), *shape)
            text += f".expand({', '.join(map(str, new))})" if solid or len(new) - len(shape) > 1 else ".unsqueeze(0)"
            shape = new
        elif len(shape) > most:
            cut = len(shape) - most
            if not most or cut > 2:
                return None
            size = 1
            for extent in shape[: cut + 1]:
                size *= extent
            text, shape = text + f".flatten(0, {cut})", (size, *shape[cut + 1 :])
        if dtype not in self.dtypes:
            if "bool" in self.dtypes and dtype in _KINDS["real"]:
                text, dtype = (f"{text} > 0", "bool")
            elif dtype == "bool" and "int64" in self.dtypes:
                text, dtype = text + ".long()", "int64"
            elif "float32" in self.dtypes and dtype in (*_KINDS["real"], "bool"):
                text, dtype = text + ".float()", "float32"
            else:
                return None
        return None if "solid" in self.on and 1 in shape else (text, dtype, shape)

    def subject(self, rng: random.Random) -> tuple[str, tuple[int, ...]]:
        """(dtype, shape) of a tensor that fits, common dtypes first."""
        dtype = self.dtypes[0] if rng.random() < 0.8 else rng.choice(self.dtypes)
        if dtype in ("float64", *_HALVES) and self.dtypes == _KINDS["any"]:
            dtype = "float32"
        least, most = self.ranks()
        rank = min(most, max(least, rng.choice((1, 2, 2, 3))))
        shape = rng.choice(_SHAPES[rank])
        return ("int64" if dtype == "int8" else dtype), ((0, *shape[1:]) if "empty" in self.on else shape)


@dataclass(frozen=True)
class Piece:
    """An idiom filled in. ``results``: names bound and not read again, the value of the idiom first;
    ``written``: ``x`` where it was changed in place and nothing was bound."""

    lines: tuple[str, ...]
    inputs: tuple[tuple[str, str], ...]
    results: tuple[str, ...]
    binds: tuple[str, ...]
    helper: str = ""
    written: str = ""


def parse(entry: Any, where: str) -> Idiom:
    """An idiom from its entry of a table. Raises ``UserError`` naming the place (``where``) and the remedy."""
    if not isinstance(entry, Mapping) or set(entry) - KEYS:
        raise UserError(f"{where}: an idiom is a table of {', '.join(sorted(KEYS))}")
    on = frozenset(str(entry.get("on", "float")).split())
    if not on & _KINDS.keys():
        on |= {"float"}
    if on - _WORDS:
        raise UserError(f"{where}.on: no word {sorted(on - _WORDS)[0]!r}; use {', '.join(sorted(_WORDS))}")
    code, helper = "\n".join(entry.get("code", ())), "\n".join(entry.get("helper", ()))
    for name, text in (("code", code), ("helper", helper)):
        try:
            ast.parse(text)
        except SyntaxError as error:
            raise UserError(f"{where}.{name}: not Python ({error.msg}); mend the text") from None
    inputs = {str(name): str(text) for name, text in entry.get("inputs", {}).items()}
    if set(inputs) - set("vwkm"):
        raise UserError(f"{where}.inputs: name them v, w, k or m")
    return Idiom(
        on, code, inputs, helper, entry.get("meta", {}), str(entry.get("returns", "")), bool(entry.get("scoped"))
    )


def write(
    idiom: Idiom,
    x: str,
    dtype: str,
    shape: Sequence[int],
    rng: random.Random,
    name: Callable[[], str],
    y: str = "",
) -> Piece:
    """The idiom for tensor ``x``; ``name`` gives fresh names, ``y`` is a tensor of the same dtype and shape."""
    values = _values(dtype, tuple(shape), rng)
    names = {"x": x, "y": y or x}

    def fill(text: str, rename: bool = True) -> str:
        if dtype == "float32":
            text = text.replace(".to(torch.DTYPE)", "").replace(", dtype=torch.DTYPE", "")
        text = _PARAMETERS.sub(lambda found: values[found[1]], text)
        if not shape:
            text = text.replace(", ())", ")")
        return _NAMES.sub(lambda found: names[found[1]], text) if rename else text

    for letter in _NAMES.findall(idiom.code):
        if letter not in names:
            names[letter] = name()
    lines = tuple(fill(line) for line in idiom.code.splitlines())
    inputs = tuple((names[letter], fill(text, False)) for letter, text in idiom.inputs.items() if letter in names)
    bound, read = _bound_and_read(idiom.code)
    results = [names[letter] for letter in ("r", *sorted(_LOCALS - {"r"})) if letter in bound - (read - {"r"})]
    made = tuple(names[letter] for letter in sorted(bound))
    written = "" if bound else x
    return Piece(lines, inputs, tuple(results), made, fill(idiom.helper, False), written if idiom.code else "")


def _values(dtype: str, shape: tuple[int, ...], rng: random.Random) -> dict[str, str]:
    count = 1
    for size in shape:
        count *= size
    sizes = ", ".join(map(str, shape))
    return {
        "N": str(shape[0] if shape else 1),
        "M": str(shape[-1] if shape else 1),
        "CHANNELS": str(shape[1] if len(shape) > 1 else 1),
        "RANK": str(len(shape)),
        "NUMEL": str(max(1, count)),
        "DIM": str(rng.randrange(len(shape)) if shape else 0),
        "SIZES": sizes or "()",
        "SHAPE": f"({sizes}{',' if len(shape) == 1 else ''})",
        "ROW": ", ".join(map(str, shape[1:])) or "1",
        "COL": ", ".join(map(str, (*shape[:-1], 1))),
        "DTYPE": dtype,
        "HALF": rng.choice([half for half in _HALVES if half != dtype]),
        "FLOATD": rng.choice([other for other in _KINDS["float"] if other != dtype]),
        "INTD": rng.choice([other for other in _INTEGERS if other != dtype]),
    }


def _bound_and_read(code: str) -> tuple[set[str], set[str]]:
    """Locals of the idiom that are bound, and those that are read again."""
    bound: set[str] = set()
    read: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.Name) and node.id in _LOCALS:
            (read if isinstance(node.ctx, ast.Load) else bound).add(node.id)
    return bound, read


__all__ = ["KEYS", "Idiom", "Piece", "parse", "write"]
