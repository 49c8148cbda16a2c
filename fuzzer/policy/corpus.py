"""The corpus: kept programs, and which of them to use next.

Energy of a seed, with N the number of distinct keys, n_d that of domain d, and freq(k) the runs that showed key k:

    energy = speed · Σ_d  w_d · N / n_d · Σ_{k of the seed in d} 1 / freq(k)   +   bonus of first hits

so a seed counts for what few runs show, and no domain drowns the others by its mere size. ``speed`` is
mean seconds / seconds of the seed, within ¼ … 4.

Rarity is taken over keys that *every* run reports: compiler events, kernel classes, operator adjacency, pairs of
features. Native and Python coverage ids cannot serve: they are armed only while unknown, so how often they are reached
afterwards is never seen. What they can say is who reached them first: that is the bonus, log2(1 + ids), which decays
as 1 / (1 + times chosen).

Sampling is exact and O(log n): frequencies only grow, so a stored energy is an upper bound of the true one. A draw
takes a (domain, seed) pair in proportion to the stored energies, recomputes that one, and accepts it with probability
true / stored; a rejected one has at least been brought up to date.
"""

from __future__ import annotations

import math
import random
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzer.policy.fenwick import Fenwick

#: The rarest keys that a seed keeps. Energy is all but decided by them, and a million seeds must fit into memory.
KEYS_KEPT = 24

#: Weight of a domain, the part of a key before its colon.
DOMAIN_WEIGHTS: Mapping[str, float] = {"kernels": 1.0, "events": 1.0, "ops": 0.7, "pairs": 0.3}
_DEFAULT_WEIGHT = 0.5
_FIRST_WEIGHT = 1.0
_FIRST = "first"  # pseudo-domain of the bonus
_BASE = "base"  # pseudo-domain that keeps a seed without rare keys alive
_BASE_ENERGY = 0.01
_SPEED_LOW, _SPEED_HIGH = 0.25, 4.0
_DRAWS = 200  # rejections before the last candidate is taken as it is


@dataclass(slots=True)
class Seed:
    """One kept program."""

    id: str
    parents: tuple[str, ...] = ()
    engine: str = ""
    features: frozenset[str] = frozenset()  # realised
    operators: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()  # always observable, "domain:rest"; the corpus keeps the rarest
    first: int = 0  # native and Python ids that it was the first to reach
    seconds: float = 1.0  # of one run
    added: int = 0  # number of the run that added it
    chosen: int = 0  # times it was used as seed or donor
    children: int = 0
    findings: int = 0  # among its children

    def to_map(self) -> dict[str, Any]:
        data = {name: getattr(self, name) for name in self.__dataclass_fields__}
        for name in ("parents", "operators", "keys"):
            data[name] = list(data[name])
        data["features"] = sorted(self.features)
        return data

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Seed:
        known = {key: value for key, value in data.items() if key in cls.__dataclass_fields__}
        for name in ("parents", "operators", "keys"):
            known[name] = tuple(known.get(name, ()))
        known["features"] = frozenset(known.get("features", ()))
        return cls(**known)


class Corpus:
    """Seeds by id, with lineage and energies. Never shrinks: minimising is a command of its own."""

    def __init__(self, weights: Mapping[str, float] = DOMAIN_WEIGHTS) -> None:
        self.weights = dict(weights)
        self.seeds: list[Seed] = []
        self._position: dict[str, int] = {}
        self._frequency: dict[str, int] = {}
        self._domain_size: dict[str, int] = {}
        self._trees: dict[str, Fenwick] = {_BASE: Fenwick(), _FIRST: Fenwick()}
        self._speed: list[float] = []
        self._seconds = 0.0

    def __len__(self) -> int:
        return len(self.seeds)

    def __contains__(self, seed: object) -> bool:
        return seed in self._position

    def get(self, seed: str) -> Seed:
        """Raises ``KeyError`` for an unknown id."""
        return self.seeds[self._position[seed]]

    # --- growing --------------------------------------------------------------------------------------------------

    def observe(self, keys: Iterable[str]) -> list[str]:
        """Count the keys of one valid run, kept or not. Returns those seen for the first time."""
        new = []
        for key in set(keys):
            count = self._frequency.get(key, 0)
            self._frequency[sys.intern(key)] = count + 1
            if not count:
                domain = key.partition(":")[0]
                self._domain_size[domain] = self._domain_size.get(domain, 0) + 1
                new.append(key)
        return sorted(new)

    def is_new(self, key: str) -> bool:
        """No run observed so far has shown this key."""
        return key not in self._frequency

    def add(self, seed: Seed) -> bool:
        """Keep a seed, with its rarest keys. Its keys must have been observed. False when its id is known."""
        if seed.id in self._position:
            return False
        rarest = sorted(seed.keys, key=lambda key: (self._frequency.get(key, 0), key))[:KEYS_KEPT]
        seed.keys = tuple(sys.intern(key) for key in rarest)  # one string per key, not per seed
        self._position[seed.id] = len(self.seeds)
        self.seeds.append(seed)
        self._seconds += seed.seconds
        mean = self._seconds / len(self.seeds)
        self._speed.append(min(max(mean / max(seed.seconds, 1e-6), _SPEED_LOW), _SPEED_HIGH))
        self._store(len(self.seeds) - 1)
        for parent in seed.parents:
            if parent in self._position:
                self.get(parent).children += 1
        return True

    def record_finding(self, program: str) -> None:
        """A finding came of this program's child; unknown ids (already reduced away) are ignored."""
        if program in self._position:
            self.get(program).findings += 1

    def _store(self, position: int) -> None:
        parts = self._parts(position)
        for domain in parts:
            if domain not in self._trees:
                self._trees[domain] = Fenwick()
        for domain, tree in self._trees.items():
            while len(tree) < position:  # a domain that came up later
                tree.append(0.0)
            if len(tree) == position:
                tree.append(parts.get(domain, 0.0))
            else:
                tree.set(position, parts.get(domain, 0.0))

    # --- energy ---------------------------------------------------------------------------------------------------

    def _parts(self, position: int) -> dict[str, float]:
        """Energy per domain before the domain's scale; never grows while the seed lives."""
        seed, speed = self.seeds[position], self._speed[position]
        parts = {_BASE: speed}
        if seed.first:
            parts[_FIRST] = math.log2(1.0 + seed.first) / (1.0 + seed.chosen)
        for key in seed.keys:
            domain = key.partition(":")[0]
            parts[domain] = parts.get(domain, 0.0) + speed / max(self._frequency.get(key, 1), 1)
        return parts

    def _scale(self, domain: str) -> float:
        if domain == _BASE:
            return _BASE_ENERGY
        if domain == _FIRST:
            return _FIRST_WEIGHT
        return (
            self.weights.get(domain, _DEFAULT_WEIGHT) * len(self._frequency) / max(self._domain_size.get(domain, 1), 1)
        )

    def energy(self, seed: str) -> float:
        """Current energy of a seed."""
        return sum(self._scale(domain) * part for domain, part in self._parts(self._position[seed]).items())

    # --- choosing -------------------------------------------------------------------------------------------------

    def choose(self, rng: random.Random) -> Seed | None:
        """A seed, in proportion to its current energy; counts as chosen. None from an empty corpus."""
        position = self._draw(rng)
        if position is None:
            return None
        seed = self.seeds[position]
        seed.chosen += 1
        return seed

    def donor(self, rng: random.Random, seed: Seed) -> Seed | None:
        """A partner for a splice: of four drawn by energy, the one whose features differ most. None without another."""
        best: Seed | None = None
        best_distance = -1.0
        for _ in range(4):
            position = self._draw(rng)
            candidate = self.seeds[position] if position is not None else None
            if candidate is None or candidate.id == seed.id:
                continue
            union = len(candidate.features | seed.features)
            distance = 1.0 - len(candidate.features & seed.features) / union if union else 0.0
            if distance > best_distance:
                best, best_distance = candidate, distance
        if best is None and len(self.seeds) > 1:  # one seed holds nearly all energy
            place = rng.randrange(len(self.seeds) - 1)
            best = self.seeds[place + (place >= self._position.get(seed.id, len(self.seeds)))]
        if best is not None:
            best.chosen += 1
        return best

    def uniform(self, rng: random.Random) -> Seed | None:
        """A seed regardless of energy (the ablation); counts as chosen."""
        if not self.seeds:
            return None
        seed = self.seeds[rng.randrange(len(self.seeds))]
        seed.chosen += 1
        return seed

    def _draw(self, rng: random.Random) -> int | None:
        if not self.seeds:
            return None
        position = 0
        for _ in range(_DRAWS):
            domain, point = self._draw_domain(rng)
            tree = self._trees[domain]
            position = tree.find(point)
            stored, current = tree.weights[position], self._parts(position).get(domain, 0.0)
            if current < stored:
                self._refresh(position)
            if rng.random() * stored < current:
                return position
        return position

    def _draw_domain(self, rng: random.Random) -> tuple[str, float]:
        """A domain in proportion to its stored energy, and a point below its tree's total."""
        masses = [(domain, self._scale(domain) * max(tree.total, 0.0)) for domain, tree in self._trees.items()]
        point = rng.random() * sum(mass for _, mass in masses)
        for domain, mass in masses:
            if point < mass:
                return domain, point / self._scale(domain)
            point -= mass
        return _BASE, 0.0  # rounding: the point fell past the end

    def _refresh(self, position: int) -> None:
        """Bring the stored energies of one seed up to date."""
        parts = self._parts(position)
        for domain, tree in self._trees.items():
            if position < len(tree):
                tree.set(position, parts.get(domain, 0.0))

    # --- lineage --------------------------------------------------------------------------------------------------

    def ancestors(self, seed: str) -> list[str]:
        """Ids of all ancestors, nearest first, each once; parents that were never kept are included."""
        found: dict[str, None] = {}
        level = list(self.get(seed).parents)
        while level:
            following: list[str] = []
            for parent in level:
                if parent not in found and parent != seed:
                    found[parent] = None
                    if parent in self._position:
                        following.extend(self.get(parent).parents)
            level = following
        return list(found)

    def to_map(self) -> dict[str, Any]:
        return {
            "weights": self.weights,
            "seeds": [seed.to_map() for seed in self.seeds],
            "frequency": self._frequency,
            "speed": self._speed,
            "seconds": self._seconds,
            "trees": {domain: tree.to_map() for domain, tree in self._trees.items()},
        }

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Corpus:
        """The exact state: the same random stream draws the same seeds from it."""
        corpus = cls(data["weights"])
        corpus.seeds = [Seed.from_map(seed) for seed in data["seeds"]]
        corpus._position = {seed.id: position for position, seed in enumerate(corpus.seeds)}
        corpus._frequency = dict(data["frequency"])
        for key in corpus._frequency:
            domain = key.partition(":")[0]
            corpus._domain_size[domain] = corpus._domain_size.get(domain, 0) + 1
        corpus._speed = list(data["speed"])
        corpus._seconds = data["seconds"]
        corpus._trees = {domain: Fenwick.from_map(tree) for domain, tree in data["trees"].items()}
        return corpus
