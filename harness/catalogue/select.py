"""Which of many valid calls to keep: few, small, and different from each other in structure. Pure."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from harness.catalogue.source import tensors

#: Weight of a kind of structure that no call kept so far shows. A new keyword opens another path of the operator;
#: another exact shape hardly does. Chosen by hand; only the order matters.
#: Whole numbers: sums over a set must not depend on its order, or two derivations would differ.
_WEIGHT = {"keyword": 30, "count": 25, "kind": 20, "rank": 20, "literal": 10, "strided": 10, "empty": 7, "shape": 1}

#: A call must bring at least this much to be kept: one new literal, rank or emptiness, but not one more shape.
WORTH = 5


def structure(call: Mapping[str, Any]) -> set[tuple[Any, ...]]:
    """What a call shows, as (kind of structure, where, what). A call on an empty tensor shows that and no more: it
    must not take the place of one that computes something."""
    if is_empty(call):
        return {("empty", place) for place, record in enumerate(tensors(call)) if 0 in record["shape"]}
    seen: set[tuple[Any, ...]] = {("count", len(call["args"]))}
    for place, record in [*enumerate(call["args"]), *call["kwargs"].items()]:
        if isinstance(place, str):
            seen.add(("keyword", place))
        seen.add(("kind", place, record["t"]))
        if record["t"] == "tensor":
            seen.add(("rank", place, len(record["shape"])))
            seen.add(("shape", place, tuple(record["shape"])))
            seen.add(("kind", place, record["dtype"]))
            if record.get("layout") == "strided":
                seen.add(("strided", place))
        elif record["t"] == "literal":
            seen.add(("literal", place, record["text"]))
        else:
            seen.add(("rank", place, len(record["items"])))
    return seen


def size(call: Mapping[str, Any]) -> int:
    """Elements in all tensors of the call."""
    return sum(math.prod(record["shape"]) for record in tensors(call))


def is_empty(call: Mapping[str, Any]) -> bool:
    """Whether some tensor has no element: such a call proves little about dtypes."""
    return any(0 in record["shape"] for record in tensors(call))


class Chooser:
    """Hands out calls, most new structure first; what ``keep`` was told is no longer new."""

    def __init__(self, calls: list[dict[str, Any]], largest: int = 20_000) -> None:
        self._left = [(call, structure(call), size(call)) for call in calls]
        self._left = [entry for entry in self._left if entry[2] <= largest]
        self._seen: set[tuple[Any, ...]] = set()

    def take(self) -> dict[str, Any] | None:
        """The best call left, removed; ``None`` when none is worth a place."""
        best, value = -1, float(WORTH)
        for position, (_, parts, elements) in enumerate(self._left):
            gain = sum(_WEIGHT[part[0]] for part in parts if part not in self._seen) - elements / 100
            if gain > value or (best < 0 and not self._seen):
                best, value = position, gain
        return None if best < 0 else self._left.pop(best)[0]

    def keep(self, call: dict[str, Any]) -> None:
        """Count the call's structure as shown."""
        self._seen |= structure(call)


#: Shapes that an elementwise call is also tried in.
_SHAPES: tuple[tuple[int, ...], ...] = ((4, 5), (2, 3, 4), (), (7,), (0, 3), (2, 1, 3, 2))


def reshaped(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call in other shapes, last one transposed; empty unless all its tensors stand alone in one shape."""
    shapes = {tuple(record["shape"]) for record in tensors(call)}
    if len(shapes) != 1 or any("data" in record for record in tensors(call)):
        return []

    def turn(record: dict[str, Any], shape: tuple[int, ...], layout: str) -> dict[str, Any]:
        return {**record, "shape": list(shape), "layout": layout} if record["t"] == "tensor" else record

    wanted = [(shape, "contiguous") for shape in _SHAPES if shape not in shapes] + [((3, 4), "strided")]
    return [
        {
            "args": [turn(record, *way) for record in call["args"]],
            "kwargs": {name: turn(record, *way) for name, record in call["kwargs"].items()},
        }
        for way in wanted
    ]


def swapped(call: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The call with its first two arguments exchanged: test databases put the tensor to differentiate first."""
    first, second = call["args"][:1], call["args"][1:2]
    return [{**call, "args": [*second, *first, *call["args"][2:]]}] if second else []
