"""What a feature vector asks of the template engine, sorted by how it is brought about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from fuzzer.engines.mutate import MUTATIONS
from fuzzer.engines.tensors import COMPLEX, FLOATS, LAYOUTS, SIGNED, SIZES, VALUES

#: Dimensions that the builder brings about itself, while it writes.
_BUILT = frozenset({"dtype", "shape", "layout", "values", "mode", "op_family", "adjacency", "topology", "broadcast"})

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


@dataclass(frozen=True)
class Wishes:
    """``built``: dimension → values for the builder; ``calls``: boundary features found in recorded calls;
    ``mutations``: (feature, names of mutations that aim at it), applied to the finished program."""

    built: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    calls: tuple[str, ...] = ()
    mutations: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def of(cls, features: Iterable[str]) -> Wishes:
        built: dict[str, list[str]] = {}
        calls: list[str] = []
        mutations: list[tuple[str, tuple[str, ...]]] = []
        for feature in features:
            dimension, _, value = feature.partition("=")
            if dimension in _BUILT:
                built.setdefault(dimension, []).append(value)
            if dimension == "boundary" and value in BOUNDARY_TEXT:
                calls.append(value)
            elif dimension not in ("dtype", "shape", "layout", "values", "op_family", "adjacency"):
                aiming = _aiming(feature)
                if aiming:
                    mutations.append((feature, aiming))
        return cls({name: tuple(values) for name, values in built.items()}, tuple(calls), tuple(mutations))

    def values(self, dimension: str) -> tuple[str, ...]:
        return self.built.get(dimension, ())

    def wants(self, feature: str) -> bool:
        dimension, _, value = feature.partition("=")
        return value in self.values(dimension)

    @property
    def mode(self) -> str:
        modes = self.values("mode")
        return modes[0] if modes else "forward"


def _aiming(feature: str) -> tuple[str, ...]:
    return tuple(name for name, mutation in sorted(MUTATIONS.items()) if feature in mutation.aims)


def askable() -> frozenset[str]:
    """Features that the template engine knows a way to bring about. The others are recognised where they occur."""
    built = [f"shape={value}" for value in (*SIZES, "scalar", "high_rank", "large", "tall")]
    built += [f"dtype={value}" for value in (*FLOATS, *COMPLEX, *SIGNED, "uint8", "wide_unsigned", "bool", "float8")]
    built += [f"layout={value}" for value in LAYOUTS] + [f"values={value}" for value in VALUES]
    built += [f"mode={value}" for value in ("forward", "backward", "dynamic", "train", "eval")]
    built += [f"topology={value}" for value in ("chain", "deep", "in_place", "multi_result")]
    built += [f"boundary={value}" for value in BOUNDARY_TEXT]
    aimed = {feature for mutation in MUTATIONS.values() for feature in mutation.aims}
    return frozenset({*built, *aimed})
