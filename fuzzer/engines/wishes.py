"""What a feature vector asks of the template engine, sorted by how it is brought about."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from fuzzer.engines.idioms import default_idioms
from fuzzer.engines.tensors import COMPLEX, FLOAT8, FLOATS, LAYOUTS, SIGNED, SIZES, UNSIGNED, VALUES
from fuzzer.features.detect import default_space
from fuzzer.features.detect_run import layouts, shape_words
from fuzzer.program import MODES

_WIDE = UNSIGNED[1:]

#: Recorded calls that carry a boundary feature, by their arguments as text.
BOUNDARY_TEXT: Mapping[str, re.Pattern[str]] = {
    "negative_dim": re.compile(r"dim\w*=-\d|, -[1-4]\b|^-[1-4]\b"),
    "tuple_dim": re.compile(r"dim\w*=\(|, \(-?\d, "),
    "float_extreme": re.compile(r"inf|nan|1e\+?[23]\d"),
    "zero_argument": re.compile(r"=0(\.0)?\b"),
    "ceil_mode": re.compile(r"ceil_mode=True"),
    "stride": re.compile(r"stride=\(?[2-9]"),
    "dilation": re.compile(r"dilation=\(?[2-9]"),
    "keepdim": re.compile(r"keepdim=True|, True\b"),
    "alpha": re.compile(r"alpha=|beta="),
    "rounding_mode": re.compile(r"rounding_mode="),
    "asymmetric_padding": re.compile(r"pad\w*=\((\d), (?!\1)\d"),
    "negative_padding": re.compile(r"\(-\d, |pad\w*=.*-\d"),
}


#: Dimensions that some tensor has.
_TENSOR = ("dtype", "shape", "layout", "values")


@dataclass(frozen=True)
class Wishes:
    """``built``: dimension → values; ``edges``: (group, group) pairs, the second reads the first;
    ``boundaries``: what recorded calls may carry; ``idioms``: features that idioms bring about."""

    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edges: tuple[tuple[str, str], ...] = ()
    boundaries: tuple[str, ...] = ()
    idioms: tuple[str, ...] = ()

    @classmethod
    def of(cls, features: Iterable[str], known: Container[str] = ()) -> Wishes:
        """``known``: features that have idioms."""
        built: dict[str, list[str]] = {}
        edges: list[tuple[str, str]] = []
        boundaries: list[str] = []
        idioms: list[str] = []
        for feature in features:
            dimension, _, value = feature.partition("=")
            built.setdefault(dimension, []).append(value)
            if dimension == "adjacency":
                left, _, right = value.partition(">")
                edges.append((left, right))
            if dimension == "boundary" and value in BOUNDARY_TEXT:
                boundaries.append(value)
            if feature in known:
                idioms.append(feature)
        return cls(
            {name: tuple(values) for name, values in built.items()}, tuple(edges), tuple(boundaries), tuple(idioms)
        )

    def values(self, dimension: str) -> tuple[str, ...]:
        return self.built.get(dimension, ())

    def wants(self, feature: str) -> bool:
        dimension, _, value = feature.partition("=")
        return value in self.values(dimension)

    def unmet(self, tensors: Iterable[Mapping[str, Any]], inputs: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
        """What none of the tensors brings about yet: dimension → values. ``inputs`` alone count for values."""
        seen: dict[str, set[str]] = {name: set() for name in _TENSOR}
        for facts in tensors:
            dtype, shape = str(facts["dtype"]), facts["shape"]
            seen["dtype"] |= {dtype, "float8" if dtype in FLOAT8 else "", "wide_unsigned" if dtype in _WIDE else ""}
            seen["shape"] |= shape_words(shape)
            seen["layout"] |= layouts(shape, facts.get("stride", ()), int(facts.get("offset", 0)))
        for facts in inputs:
            seen["values"].update(facts.get("values", ()))
        return {
            name: [value for value in self.values(name) if value not in seen[name]]
            for name in _TENSOR
            if set(self.values(name)) - seen[name]
        }

    @property
    def mode(self) -> str:
        modes = self.values("mode")
        return modes[0] if modes else "forward"


@lru_cache(maxsize=1)
def askable() -> frozenset[str]:
    """Features that the template engine knows a way to bring about. The others are recognised where they occur."""
    idioms = default_idioms()
    built = [f"shape={value}" for value in (*SIZES, "scalar", "high_rank", "large", "tall")]
    built += [f"dtype={value}" for value in (*FLOATS, *COMPLEX, *SIGNED, "uint8", "wide_unsigned", "bool", "float8")]
    built += [f"layout={value}" for value in LAYOUTS] + [f"values={value}" for value in VALUES]
    built += [f"mode={value}" for value in MODES]
    built += [f"topology={value}" for value in ("chain", "deep", "multi_result")]
    built += [f"boundary={value}" for value in BOUNDARY_TEXT]
    groups = idioms.groups
    edges = [f for f in default_space().features if f.startswith("adjacency=")]
    built += [edge for edge in edges if set(edge.partition("=")[2].split(">")) <= groups]
    return frozenset({*built, *idioms.features, "context=second_call"})
