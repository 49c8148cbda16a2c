"""Candidates put to the probe: which holds is taken into the draft, with the facts of what came out."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from fuzzer.engines.candidates import Proposer
from fuzzer.engines.checks import SETUP, gradient_check, range_checks
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.wishes import Wishes

_LARGEST = 1 << 20  # elements of a result: beyond, time goes into memory traffic and not into the compiler
_MOST_RESULTS = 32  # of one statement: each is compared and returned, thousands take minutes to compile
_DULL = 0.7  # share of results full of NaN, asked by nobody, that are thrown away


class Prober(Protocol):
    """What the engine needs of a worker (see ``harness.probe``)."""

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, reset: bool = False
    ) -> dict[str, Any]: ...


class Died(Exception):
    """A statement killed the probe child; the draft ends with it."""


class Trials:
    """The probe's side of one draft. ``died``: the statement that killed the probe child and how."""

    def __init__(self, draft: Draft, wishes: Wishes, proposer: Proposer, prober: Prober, rng: random.Random) -> None:
        self.draft = draft
        self.wishes = wishes
        self.proposer = proposer
        self.prober = prober
        self.rng = rng
        self.proposals = 0
        self.refused = 0
        self.died = ""

    async def start(self) -> None:
        """An empty probe child with the checks defined."""
        await self.prober.probe([[SETUP]], reset=True)

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, tried: Sequence[Candidate] = ()
    ) -> list[dict[str, Any]]:
        """One answer a group. Raises ``Died``, with the guilty one of ``tried`` in the draft."""
        answer = await self.prober.probe(groups, names)
        if "died" not in answer:
            return list(answer["results"])
        died = answer["died"]
        if tried:
            guilty = tried[min(died["candidate"], len(tried) - 1)]
            self.died = f"{guilty.operator or guilty.lines[-1]}: {died['name']}"
            self.draft.accept(guilty, {})
        else:
            self.died = f"whole program: {died['name']}"
        raise Died

    async def accept(self, candidates: Sequence[Candidate]) -> bool:
        """Take the first candidate that holds into the draft; False when none does."""
        if not candidates:
            return False
        self.proposals += len(candidates)
        watched = sorted({candidate.written for candidate in candidates if candidate.written})
        texts = [self._checked(candidate) for candidate in candidates]
        (result,) = await self.probe([texts], [watched], candidates)
        self.refused += len(result["errors"])
        self.proposer.learn(candidates, result["chosen"])
        if result["chosen"] < 0:
            return False
        candidate = candidates[result["chosen"]]
        if not candidate.written and self._unwanted(candidate, result["facts"]):
            return False
        self.draft.accept(candidate, result["facts"])
        await self._unpack(candidate, result["facts"])
        return True

    def _checked(self, candidate: Candidate) -> str:
        """The candidate's text with what must hold before and after it."""
        inputs = "\n".join(f"{name} = {source}" for name, source in candidate.inputs)
        checks = range_checks(candidate.lines, candidate.reads)
        parts = [*([inputs] if inputs and checks else []), *checks, candidate.text()]
        if self.draft.mode in ("backward", "train"):
            inputs_so_far = [name for name, _ in (*self.draft.inputs, *candidate.inputs)]
            results = [*self.draft.results(), candidate.target or candidate.written, *candidate.results]
            parts.append(gradient_check([name for name in dict.fromkeys(results) if name], inputs_so_far))
        return "\n".join(parts)

    def _unwanted(self, candidate: Candidate, facts: dict[str, Any]) -> bool:
        """Results that would make the rest of the program dull: huge, or flooded with NaN that nobody asked for."""
        made = facts.get(candidate.target, {})
        if made.get("kind") == "other" and not candidate.results:
            return True
        if made.get("length", 0) > _MOST_RESULTS:
            return True
        size = 1
        for extent in made.get("shape", ()):
            size *= extent
        if size > _LARGEST:
            return True
        flooded = "nan" in made.get("values", ()) and "nan" not in self.wishes.values("values")
        return flooded and not candidate.results and self.rng.random() < _DULL

    async def _unpack(self, candidate: Candidate, facts: dict[str, Any]) -> None:
        made = facts.get(candidate.target, {})
        items = made.get("items", [])
        if made.get("kind") not in ("tuple", "list") or not 1 < len(items) <= 4 or candidate.results:
            return
        parts = self.draft.fresh_names(len(items))
        (result,) = await self.probe([[f"{', '.join(parts)} = {candidate.target}"]])
        if result["chosen"] == 0:
            self.draft.unpack(candidate.target, parts, items)
