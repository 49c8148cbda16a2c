"""The template engine: writes programs by probing.

It proposes statements in ranked batches; a probe child of the harness executes them on live tensors and answers which
held and what came out; the engine goes on from there. So programs are valid by construction and no shape rules are
kept here: what an operator accepts is asked, not modelled.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from fuzzer.engines.candidates import Proposer
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.mutate import MutationContext, mutate
from fuzzer.engines.tensors import SIZES
from fuzzer.engines.wishes import Wishes
from fuzzer.knowledge.operators import Operators
from fuzzer.policy.plan import Plan
from fuzzer.program import Program, ProgramError

#: Number of statements of a program and how often each is drawn. Small programs compile fast and reduce well;
#: fusion wants at least three.
_LENGTHS = ((1, 2), (2, 5), (3, 6), (4, 6), (5, 4), (6, 3), (8, 2), (10, 1))
_TRIES = 4  # operators tried for one statement
#: Families whose results are undefined: every difference would be dismissed.
_UNDEFINED = frozenset({"uninitialised"})
_LARGEST = 1 << 20  # elements of a result: beyond, time goes into memory traffic and not into the compiler


class Prober(Protocol):
    """What the engine needs of a worker (see ``harness.probe``)."""

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, reset: bool = False
    ) -> dict[str, Any]: ...


#: (family, random stream, how many) → keys of operators, the most wanted first.
ChooseOperators = Callable[[str, random.Random, int], list[str]]


@dataclass(frozen=True)
class Written:
    """A program and what writing it taught. ``died``: the statement that killed the probe child."""

    program: Program
    operators: tuple[str, ...]
    proposals: int = 0
    refused: int = 0
    died: str = ""


class CannotWrite(Exception):
    """Nothing that was proposed held: the plan is given up, nothing else is lost."""


class TemplateEngine:
    """Writes one program per plan."""

    def __init__(self, operators: Operators) -> None:
        self.operators = operators
        self.proposer = Proposer(operators)

    async def write(self, plan: Plan, choose: ChooseOperators, prober: Prober) -> Written:
        """A program with the plan's features.

        Raises:
            CannotWrite: no statement held.
            WorkerLost: the prober's server died.
        """
        writer = _Writer(self, plan, choose, prober)
        return await writer.write()


class _Writer:
    """State of one program's writing."""

    def __init__(self, engine: TemplateEngine, plan: Plan, choose: ChooseOperators, prober: Prober) -> None:
        self.engine = engine
        self.plan = plan
        self.choose = choose
        self.prober = prober
        self.rng = random.Random(plan.random)
        self.wishes = Wishes.of(plan.features)
        self.draft = Draft(mode=self.wishes.mode)
        self.proposals = 0
        self.refused = 0
        self.died = ""

    async def write(self) -> Written:
        await self.prober.probe([], reset=True)
        for number in range(self._length()):
            if not await self._statement(number) or self.died:
                break
        if not self.draft.body:
            raise CannotWrite(f"no statement held for families {', '.join(self.plan.families)}")
        program = self._finished()
        if not self.died:
            program = await self._dressed(program)
        return Written(program, tuple(self.draft.operators), self.proposals, self.refused, self.died)

    def _length(self) -> int:
        if self.wishes.wants("topology=deep"):
            return self.rng.randint(10, 12)
        lengths, weights = zip(*_LENGTHS)
        length = int(self.rng.choices(lengths, weights)[0])
        linked = any(self.wishes.values(name) for name in ("topology", "adjacency"))
        return max(length, 4 if self.wishes.wants("topology=chain") else 2 if linked else 1)

    # -- one statement ------------------------------------------------------------------------------------------

    async def _statement(self, number: int) -> bool:
        """Add one statement; False when nothing held."""
        known = self.plan.families or tuple(self.engine.operators.by_family)
        families = [family for family in known if family not in _UNDEFINED] or ["pointwise_unary"]
        family = families[number] if number < len(families) else self.rng.choice(families)
        keys = self.choose(family, self.rng, _TRIES)
        for key in keys:
            operator = self.engine.operators.by_key.get(key)
            if operator is None:
                continue
            candidates = self.engine.proposer.propose(operator, self.draft, self.wishes, self.rng)
            if candidates and await self._try(candidates):
                return True
            if self.died:
                return False
        return False

    async def _try(self, candidates: Sequence[Candidate]) -> bool:
        self.proposals += len(candidates)
        answer = await self.prober.probe([[candidate.text() for candidate in candidates]], [self._watched(candidates)])
        if "died" in answer:
            died = answer["died"]
            guilty = candidates[min(died["candidate"], len(candidates) - 1)]
            self.died = f"{guilty.operator}: {died['name']}"
            self.draft.accept(guilty, {})
            return False
        result = answer["results"][0]
        self.refused += len(result["errors"])
        self.engine.proposer.learn(candidates, result["chosen"])
        if result["chosen"] < 0:
            return False
        candidate = candidates[result["chosen"]]
        if not candidate.written and self._unwanted(candidate, result["facts"]):
            return False
        self.draft.accept(candidate, result["facts"])
        await self._unpack(candidate, result["facts"])
        return True

    def _watched(self, candidates: Sequence[Candidate]) -> list[str]:
        """Names whose facts an in-place statement may have changed."""
        return sorted({candidate.written for candidate in candidates if candidate.written})

    def _unwanted(self, candidate: Candidate, facts: dict[str, Any]) -> bool:
        """Results that would make the rest of the program dull: huge, or flooded with NaN that nobody asked for."""
        made = facts.get(candidate.target, {})
        if made.get("kind") == "other":
            return True
        size = 1
        for extent in made.get("shape", ()):
            size *= extent
        if size > _LARGEST:
            return True
        flooded = "nan" in made.get("values", ()) and "nan" not in self.wishes.values("values")
        return flooded and self.rng.random() < 0.7

    async def _unpack(self, candidate: Candidate, facts: dict[str, Any]) -> None:
        made = facts.get(candidate.target, {})
        items = made.get("items", [])
        if made.get("kind") not in ("tuple", "list") or not 1 < len(items) <= 4:
            return
        parts = self.draft.fresh_names(len(items))
        answer = await self.prober.probe([[f"{', '.join(parts)} = {candidate.target}"]])
        results = answer.get("results") or [{"chosen": -1}]
        if results[0]["chosen"] == 0:
            self.draft.unpack(candidate.target, parts, items)

    # -- the whole program --------------------------------------------------------------------------------------

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"mode": self.draft.mode, "engine": "template"}
        if self.plan.features:
            meta["features"] = list(self.plan.features)
        if self.draft.random:
            meta["random"] = True
        return meta

    def _finished(self) -> Program:
        mode = self.draft.mode
        if mode == "backward" and not self._differentiable():
            self.draft.mode = "forward"
        if mode in ("train", "eval") and not any(source.startswith("torch.nn.") for _, source in self.draft.inputs):
            self.draft.mode = "backward" if mode == "train" and self._differentiable() else "forward"
        returns = self.draft.results()
        if self.wishes.wants("topology=multi_result") and len(returns) == 1:
            others = [name for name in self.draft.order if name in self.draft.live and name not in returns]
            returns = [*self.rng.sample(others, min(1, len(others))), *returns]
        return Program.parse(self.draft.text(self._meta(), returns), "<template>")

    def _differentiable(self) -> bool:
        return any(
            self.draft.live[name].get("requires_grad") for name in self.draft.results() if name in self.draft.live
        )

    async def _dressed(self, program: Program) -> Program:
        """Features that belong to the program as a whole (control flow, configuration, …), each by one mutation."""
        wanted = list(self.wishes.mutations)
        if self.draft.mode == "dynamic":
            wanted.append(("context=second_call", ("toggle_dynamic",)))
        for feature, mutations in wanted:
            name = self.rng.choice(mutations)
            context = MutationContext(self.rng, self.engine.operators, None, (feature,))
            dressed = self._mutated(program, name, context)
            if dressed is not None and await self._runs(dressed):
                program = dressed
        return self._signed(program)

    def _mutated(self, program: Program, name: str, context: MutationContext) -> Program | None:
        try:
            changed = mutate(program, name, context)
            return None if changed is None else self._signed(changed)
        except ProgramError:
            return None

    def _signed(self, program: Program) -> Program:
        """The same program with the META of this engine: it has no parents, and asked for the plan's features."""
        from fuzzer.engines.view import ProgramView, ViewError

        try:
            view = ProgramView.of(program)
        except ViewError:
            return program
        meta = {key: value for key, value in view.meta.items() if key not in ("parents", "engine", "features")}
        own = self._meta()
        meta = {"mode": meta.pop("mode", own["mode"]), **{k: v for k, v in own.items() if k != "mode"}, **meta}
        return Program.parse(replace(view, meta=meta).to_text(), "<template>")

    async def _runs(self, program: Program) -> bool:
        answer = await self.prober.probe([[f"{program.text}\nfn(*build_inputs())"]])
        results = answer.get("results") or [{"chosen": -1}]
        return bool(results[0]["chosen"] == 0)


__all__ = ["SIZES", "CannotWrite", "ChooseOperators", "Prober", "TemplateEngine", "Written"]
