"""The operators of a target: how each is written, sample calls that ran, and who is like whom.

The records come from ``harness.catalogue``, either live from a target or from the extract that ships.
"""

from __future__ import annotations

import functools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Union

import msgpack

from fuzzer.exits import UserError
from fuzzer.knowledge.families import KNOWLEDGE, Families
from harness.catalogue import source

#: Format of an extract; raised when a record changes its meaning.
FORMAT = 1

#: The extract that ships; it serves for targets of which nothing was derived yet.
EXTRACT = KNOWLEDGE / "operators" / "torch-2.13.0-cpu.msgpack.z"

_REMEDY = "derive it anew with `eddy knowledge build`"

Argument = Union["Tensor", "Literal", "ListArg"]


@dataclass(frozen=True)
class Tensor:
    """A tensor argument. Values: ``data`` (nested lists) where they matter, else anything within [low, high]."""

    shape: tuple[int, ...]
    dtype: str  # "float32"
    low: float = 0
    high: float = 1
    grad: bool = False
    layout: str = "contiguous"  # or "strided": some other order or step of memory
    data: Any = None

    def record(self) -> dict[str, Any]:
        """The plain form, for ``harness.catalogue.source``."""
        plain = {"t": "tensor", "shape": list(self.shape), "dtype": self.dtype, "low": self.low, "high": self.high}
        plain |= {"grad": self.grad, "layout": self.layout}
        return plain if self.data is None else {**plain, "data": self.data}

    def source(self, grad: bool | None = None) -> str:
        """An expression that makes a fresh one after ``import torch``; ``grad`` overrides the recorded flag."""
        return source.tensor_source(self.record(), grad)


@dataclass(frozen=True)
class Literal:
    """Anything without a tensor in it: source text valid after ``import torch``."""

    text: str

    def record(self) -> dict[str, Any]:
        return {"t": "literal", "text": self.text}


@dataclass(frozen=True)
class ListArg:
    """A list or tuple with a tensor somewhere inside."""

    items: tuple[Argument, ...]
    is_tuple: bool = False

    def record(self) -> dict[str, Any]:
        return {"t": "list", "items": [item.record() for item in self.items], "tuple": self.is_tuple}


@dataclass(frozen=True)
class Call:
    """Arguments that the operator took when the record was made."""

    args: tuple[Argument, ...]
    kwargs: Mapping[str, Argument]

    @functools.cached_property
    def tensors(self) -> tuple[Tensor, ...]:
        """All tensors, also those in lists, in order of appearance: the order of ``bind().inputs``."""
        return tuple(_tensors([*self.args, *self.kwargs.values()]))

    def record(self) -> dict[str, Any]:
        return {
            "args": [item.record() for item in self.args],
            "kwargs": {name: item.record() for name, item in self.kwargs.items()},
        }

    def bind(self, grad: bool | None = None, prefix: str = "x") -> source.Bound:
        """Names for the tensors with the text that makes them, and the arguments as text with those names in."""
        return source.bind(self.record(), grad, prefix)


def _tensors(arguments: Iterable[Argument]) -> Iterator[Tensor]:
    for argument in arguments:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, ListArg):
            yield from _tensors(argument.items)


@dataclass(frozen=True)
class Form:
    """One way to write the operator. ``kind`` is one of ``harness.catalogue.source.FORMS``.

    ``calls`` are indices of the operator's calls that it holds for; empty means all of them.
    """

    kind: str
    text: str
    calls: tuple[int, ...] = ()

    def render(self, args: Sequence[str], kwargs: Mapping[str, str], out: str = "", module: str = "") -> str:
        """The expression (a statement for kind ``statement``) on arguments given as text.

        Raises:
            ValueError: the form has no text for such arguments.
        """
        return source.invocation({"form": self.kind, "text": self.text}, args, kwargs, out, module)


@dataclass(frozen=True, eq=False)
class Operator:
    """One operator. Facts are of the target it was derived from; everything listed has run there."""

    name: str  # "nn.functional.conv2d"
    variant: str  # "" or which of several operators under one name
    family: str
    aten: tuple[str, ...]  # packets dispatched by its calls, "aten.convolution"
    forms: tuple[Form, ...]  # at least one
    dtypes: tuple[str, ...]
    autograd: bool
    random: bool  # draws from the random generator
    schema: tuple[str, ...]
    calls: tuple[Call, ...]  # at least one; plain ones first, empty tensors last
    lowering: str  # lowered | decomposed | fallback | none

    @property
    def key(self) -> str:
        return f"{self.name}.{self.variant}" if self.variant else self.name

    @property
    def private(self) -> bool:
        """Not for users: torch keeps no promise about it, checks little, and closes reports about it."""
        last = self.name.rsplit(".", 1)[-1]
        return last.startswith("_") and not last.startswith("__")

    @functools.cached_property
    def arities(self) -> frozenset[int]:
        """How many tensors its calls take."""
        return frozenset(len(call.tensors) for call in self.calls)

    @functools.cached_property
    def keywords(self) -> frozenset[str]:
        return frozenset(name for call in self.calls for name in call.kwargs)

    def calls_of(self, form: Form) -> tuple[Call, ...]:
        """The calls that a form of this operator holds for."""
        return tuple(self.calls[index] for index in form.calls) or self.calls


class Operators:
    """All operators known of a target."""

    def __init__(self, operators: Iterable[Operator], families: Families, fingerprint: Mapping[str, str]) -> None:
        self.families = families
        self.fingerprint = dict(fingerprint)
        self.by_key = {operator.key: operator for operator in operators}
        self.by_family: dict[str, list[Operator]] = {}
        for operator in self.by_key.values():
            self.by_family.setdefault(operator.family, []).append(operator)
        self._neighbours: dict[str, list[Operator]] = {}
        self._informed = True

    def without_neighbours(self) -> Operators:
        """The same catalogue that does not know which operators are alike (an ablation)."""
        bare = Operators(self.by_key.values(), self.families, self.fingerprint)
        bare._informed = False
        return bare

    @classmethod
    def from_records(
        cls,
        records: Iterable[Mapping[str, Any]],
        fingerprint: Mapping[str, str] | None = None,
        families: Families | None = None,
    ) -> Operators:
        """From records of ``harness.catalogue.operators``. Raises ``UserError`` on one that is not such a record."""
        families = families or Families.load()
        operators = []
        for record in records:
            try:
                operators.append(_operator(record, families))
            except (KeyError, TypeError, ValueError, AttributeError) as error:
                name = record.get("name", "?") if isinstance(record, Mapping) else "?"
                raise UserError(f"operator {name}: malformed record ({error!r}); {_REMEDY}") from None
        return cls(operators, families, fingerprint or {})

    @classmethod
    def load_extract(cls, path: Path | None = None) -> Operators:
        """Read an extract written by ``fuzzer.knowledge.build``; without a path, the one that ships.

        Raises:
            UserError: the file is missing, damaged, or of a newer format; one line with the remedy.
        """
        path = path or EXTRACT
        try:
            content = msgpack.unpackb(zlib.decompress(path.read_bytes()), raw=False)
        except OSError as error:
            raise UserError(f"{path}: cannot be read ({error.strerror}); {_REMEDY}") from None
        except Exception as error:  # zlib and msgpack raise several unrelated classes on garbage
            raise UserError(f"{path}: not an extract of operators ({error}); {_REMEDY}") from None
        form = content.get("format") if isinstance(content, dict) else None
        if not isinstance(form, int) or not isinstance(content.get("operators"), list):
            raise UserError(f"{path}: not an extract of operators (no format number); {_REMEDY}")
        if form != FORMAT:
            remedy = "update Eddy" if form > FORMAT else _REMEDY
            raise UserError(f"{path}: format {form}, this Eddy reads {FORMAT}; {remedy}")
        try:
            return cls.from_records(content["operators"], content.get("fingerprint"))
        except UserError as error:
            raise UserError(f"{path}: {error}") from None

    def choosable(self) -> dict[str, list[str]]:
        """Family → keys of the operators that programs may be made of: public, with defined results."""
        chosen = {
            family: [operator.key for operator in members if not operator.private]
            for family, members in sorted(self.by_family.items())
            if family != "uninitialised"
        }
        return {family: keys for family, keys in chosen.items() if keys}

    def __len__(self) -> int:
        return len(self.by_key)

    def __iter__(self) -> Iterator[Operator]:
        return iter(self.by_key.values())

    def family_of_aten(self, aten_name: str) -> str:
        """The family of a dispatched operator, ``"aten.add.Tensor"``; ``other`` when nothing is known of it."""
        return self.families.of(aten_name)

    def neighbours(self, operator: Operator) -> list[Operator]:
        """Functional neighbours, nearest first: same family, as many tensor arguments in some call; ordered by
        likeness of name and of keywords. Without that knowledge: any operator with as many, in no order that means
        anything."""
        if operator.key not in self._neighbours:
            among = self.by_family.get(operator.family, []) if self._informed else self.by_key.values()
            alike = [other for other in among if other.key != operator.key and other.arities & operator.arities]
            self._neighbours[operator.key] = sorted(alike, key=lambda other: self._distance(operator, other))
        return list(self._neighbours[operator.key])

    def _distance(self, one: Operator, other: Operator) -> tuple[float, str]:
        if self._informed:
            return -likeness(one, other), other.key
        return zlib.crc32(f"{one.key} {other.key}".encode()), other.key


def likeness(one: Operator, other: Operator) -> float:
    """0…1: half the names (ratio of matching characters), half keywords and arities (Jaccard)."""
    names = SequenceMatcher(None, _base(one.name), _base(other.name)).ratio()
    mine = one.keywords | {str(count) for count in one.arities}
    theirs = other.keywords | {str(count) for count in other.arities}
    return 0.5 * names + 0.5 * len(mine & theirs) / max(1, len(mine | theirs))


def _base(name: str) -> str:
    return name.rsplit(".", 1)[-1].strip("_").lower()


def _operator(record: Mapping[str, Any], families: Families) -> Operator:
    calls = tuple(_call(call) for call in record["calls"])
    # An operator named "torch.x" in the record of some OpInfo entry would read torch.torch.x.
    forms = tuple(
        Form(form["form"], form["text"].replace("torch.torch.", "torch."), tuple(form.get("calls", ())))
        for form in record["forms"]
    )
    if not calls or not forms:
        raise ValueError("no call or no form")
    unknown = [form.kind for form in forms if form.kind not in source.FORMS]
    if unknown:
        raise ValueError(f"form {unknown[0]}")
    if any(not 0 <= index < len(calls) for form in forms for index in form.calls):
        raise ValueError("a form of a call that is not there")
    return Operator(
        name=str(record["name"]),
        variant=str(record["variant"]),
        family=record.get("family") or families.of(record["name"], record["variant"]),
        aten=tuple(record["aten"]),
        forms=forms,
        dtypes=tuple(record["dtypes"]),
        autograd=bool(record["autograd"]),
        random=bool(record["random"]),
        schema=tuple(record["schema"]),
        calls=calls,
        lowering=str(record["lowering"]),
    )


def _call(record: Mapping[str, Any]) -> Call:
    return Call(
        tuple(_argument(item) for item in record["args"]),
        {name: _argument(item) for name, item in record["kwargs"].items()},
    )


def _argument(record: Mapping[str, Any]) -> Argument:
    if record["t"] == "literal":
        return Literal(record["text"])
    if record["t"] == "list":
        return ListArg(tuple(_argument(item) for item in record["items"]), bool(record.get("tuple", False)))
    if record["t"] != "tensor":
        raise ValueError(f"argument {record['t']!r}")
    return Tensor(
        tuple(record["shape"]),
        record["dtype"],
        record.get("low", 0),
        record.get("high", 1),
        record.get("grad", False),
        record.get("layout", "contiguous"),
        record.get("data"),
    )
