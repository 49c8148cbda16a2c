"""One seeded random stream per purpose, so that a change in one place does not shift the draws of another."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping
from typing import Any


def stream(seed: int, purpose: str) -> random.Random:
    """A stream of its own for a purpose: seeded with SHA-256 of the campaign's seed and the purpose's name."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return random.Random(int.from_bytes(digest, "little"))


def state_to_list(rng: random.Random) -> list[Any]:
    """The exact state of a stream as plain data."""
    version, internal, gauss = rng.getstate()
    return [version, list(internal), gauss]


def state_from_list(state: list[Any]) -> random.Random:
    rng = random.Random()
    rng.setstate((state[0], tuple(state[1]), state[2]))
    return rng


class Streams:
    """Streams by purpose, made at first use."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._streams: dict[str, random.Random] = {}

    def __getitem__(self, purpose: str) -> random.Random:
        if purpose not in self._streams:
            self._streams[purpose] = stream(self.seed, purpose)
        return self._streams[purpose]

    def to_map(self) -> dict[str, Any]:
        return {"seed": self.seed, "states": {name: state_to_list(rng) for name, rng in self._streams.items()}}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Streams:
        streams = cls(data["seed"])
        streams._streams = {name: state_from_list(state) for name, state in data["states"].items()}
        return streams
