"""The template engine: writes programs by probing.

It proposes statements in ranked batches; a probe child of the harness executes them on live tensors and answers which
held and what came out; the engine goes on from there. So programs are valid by construction and no shape rules are
kept here: what an operator accepts is asked, not modelled.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from fuzzer.engines.candidates import Proposer
from fuzzer.engines.checks import whole_run
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.extras import Extras
from fuzzer.engines.idioms import Knowledge, idioms_of
from fuzzer.engines.second import second_inputs
from fuzzer.engines.tensors import anchor
from fuzzer.engines.trials import Died, Prober, Trials
from fuzzer.engines.wishes import Wishes
from fuzzer.features.detect import default_space, detect
from fuzzer.knowledge.operators import Operator, Operators
from fuzzer.policy.plan import Plan
from fuzzer.program import Program

#: Number of free statements of a program and how often each is drawn. Small programs compile fast and reduce well;
#: fusion wants at least three.
_LENGTHS = ((1, 2), (2, 5), (3, 6), (4, 6), (5, 4), (6, 3), (8, 2), (10, 1))
_TRIES = 4  # operators tried for one statement
_LINES = 17  # of inputs, statements and helpers: then nothing is added that is not asked for
#: Share of statements that must read an earlier result where some operator can.
_LINKED = 0.85
#: Share of wishes for a parameter's boundary that start from a recorded call; the others from an idiom.
_FROM_RECORD = 0.5
#: Share of programs with a statement one of whose arguments is at a limit.
_AT_LIMIT = 0.2
#: Share of programs with a subgraph of knowledge as it stands.
_SUBGRAPH = 0.2
#: Share of programs that end in what eager refuses: compiled code must refuse it as well.
_REFUSED = 0.03
_SEEDS = (1, 2, 3, 5, 8, 13)
_SECOND = "context=second_call"
_DEPTHS = {"topology=chain": 5, "topology=deep": 12}  # a little more than is asked: some operators do not count


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

    def __init__(self, operators: Operators, knowledge: Knowledge | None = None) -> None:
        """``knowledge``: sources that are switched on; all by default."""
        self.operators = operators
        self.proposer = Proposer(operators, idioms_of(knowledge or Knowledge()))

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
        self.operators = engine.operators
        self.proposer = engine.proposer
        self.plan = plan
        self.choose = choose
        self.rng = random.Random(plan.random)
        self.wishes = Wishes.of(plan.features, engine.proposer.idioms)
        self.draft = Draft(mode=self.wishes.mode)
        self.trials = Trials(self.draft, self.wishes, self.proposer, prober, self.rng)
        self.extras = Extras(self.proposer, self.trials)
        self.why = ""  # the last refusal of a whole program
        self.refusal = ""  # what eager says to the last statement, where it is there to be refused
        self.brought: set[str] = set()  # features that an accepted idiom brings about

    async def write(self) -> Written:
        await self.trials.start()
        try:
            await self._statements()
            if not self.draft.body:
                raise CannotWrite(f"no statement held for families {', '.join(self.plan.families)}")
            program = await self._finished()
        except Died:
            program = self._program()
        trials = self.trials
        return Written(program, tuple(self.draft.operators), trials.proposals, trials.refused, trials.died)

    # -- the order of things ------------------------------------------------------------------------------------

    async def _statements(self) -> None:
        """A first statement, then what is asked among what is free, then what is still missing."""
        for key in self.wishes.idioms:
            self._options(key)
        await self._operator(self._family(0))
        if self.wishes.mode in ("train", "eval"):
            await self._module()
        await self._anchors()
        steps: list[Callable[[], Any]] = [lambda edge=edge: self._edge(*edge) for edge in self.wishes.edges]  # type: ignore[misc]
        steps += [lambda key=key: self._feature(key) for key in self._asked()]  # type: ignore[misc]
        free = max(1, self._length() - 1 - len(steps))
        steps += [lambda number=number: self._operator(self._family(number)) for number in range(1, free + 1)]  # type: ignore[misc]
        if self.rng.random() < _AT_LIMIT:
            steps.append(lambda: self.extras.at_limit(self._plain()))
        if self.rng.random() < _SUBGRAPH:
            steps.append(self.extras.subgraph)
        self.rng.shuffle(steps)
        for step in steps:
            await step()
        await self._missing()
        if self.rng.random() < _REFUSED and self.draft.mode == "forward" and not self.wishes.wants(_SECOND):
            self.refusal = await self.extras.refusal(self._plain())

    def _asked(self) -> list[str]:
        """Features that statements bring about, each once."""
        have = self.proposer.idioms
        boundaries = [f"boundary={value}" for value in self.wishes.boundaries]
        keys = [key for key in self.wishes.idioms if any(idiom.code for idiom in have.of(key))]
        return [key for key in dict.fromkeys([*keys, *boundaries]) if key not in self.brought]

    def _options(self, key: str) -> None:
        """Idioms that consist of entries of META or of the form of the result."""
        idioms = self.proposer.idioms.of(key)
        plain = [idiom for idiom in idioms if not idiom.code]
        if plain and (len(plain) == len(idioms) or self.rng.random() < len(plain) / len(idioms)):
            idiom = self.rng.choice(plain)
            self.draft.merge(dict(idiom.meta))
            self.draft.as_dict |= idiom.returns == "dict"
            self.brought.add(key)

    def _length(self) -> int:
        lengths, weights = zip(*_LENGTHS)
        return int(self.rng.choices(lengths, weights)[0])

    def _family(self, number: int) -> str:
        known = [family for family in self.plan.families if family in self.operators.by_family]
        known = [family for family in known if family != "uninitialised"] or ["pointwise_unary"]
        return known[number] if number < len(known) else self.rng.choice(known)

    def _plain(self) -> list[Operator]:
        """Operators of the plan's families, in random order."""
        keys = [key for family in self.plan.families for key in self.choose(family, self.rng, 2 * _TRIES)]
        operators = [self.operators.by_key[key] for key in dict.fromkeys(keys) if key in self.operators.by_key]
        self.rng.shuffle(operators)
        return [operator for operator in operators if self.proposer.allowed(operator, self.wishes)]

    def _full(self) -> bool:
        texts = [*self.draft.body, *self.draft.helpers]
        return sum(text.count("\n") + 1 for text in texts) + len(self.draft.inputs) > _LINES

    def _last(self) -> str:
        """The result to go on from: one that nothing reads yet, the latest mostly."""
        unread = [name for name, _ in self.draft.made() if name not in self.draft.read]
        pool = unread or [name for name, _ in self.draft.made()]
        if not pool:
            return ""
        return pool[-1] if self._deepening() or self.rng.random() < 0.6 else self.rng.choice(pool)

    def _deepening(self) -> bool:
        return any(self.wishes.wants(feature) for feature in _DEPTHS)

    # -- statements ---------------------------------------------------------------------------------------------

    async def _operator(self, family: str, main: str = "", direct: bool = False) -> bool:
        """One statement from the catalogue. ``main``: the tensor that it must read."""
        if self.draft.body and self._full() and not main:
            return False
        keys = self.choose(family, self.rng, 2 * _TRIES)
        operators = [self.operators.by_key[key] for key in keys if key in self.operators.by_key]
        operators = [op for op in operators if self.proposer.allowed(op, self.wishes)]
        dtypes = set(self.wishes.values("dtype"))
        if dtypes and not self.draft.body:
            operators.sort(key=lambda op: not dtypes & set(op.dtypes))
        operators = operators[:_TRIES]
        linked = main or (self._last() if self.draft.body and self.rng.random() < _LINKED else "")
        if linked:
            for operator in operators[: 2 if not main else _TRIES]:
                found = self.proposer.propose(operator, self.draft, self.wishes, self.rng, main=linked, direct=direct)
                if found and await self.trials.accept(found):
                    return True
        if main:
            return False
        for operator in operators:
            found = self.proposer.propose(operator, self.draft, self.wishes, self.rng)
            if found and await self.trials.accept(found):
                return True
        return False

    async def _feature(self, key: str, records: bool = True) -> bool:
        """A feature by a recorded call that carries it, or by an idiom."""
        boundary = key.removeprefix("boundary=")
        records = records and key.startswith("boundary=") and boundary in self.wishes.boundaries
        if records and self.rng.random() < _FROM_RECORD:
            carrying = self.proposer.carrying(boundary)
            for operator, call in self.rng.sample(carrying, min(3, len(carrying))):
                if not self.proposer.allowed(operator, self.wishes):
                    continue
                found = self.proposer.propose(operator, self.draft, self.wishes, self.rng, call=call)
                if found and await self.trials.accept(found):
                    return True
        held = await self._idiom(key)
        if held:
            self.brought.add(key)
        return held

    async def _idiom(self, key: str, main: str = "", written: bool = False) -> bool:
        found = self.proposer.by_idiom(key, self.draft, self.wishes, self.rng, main=main)
        return bool(found) and await self.trials.accept(found)

    async def _edge(self, left: str, right: str) -> bool:
        """An operator of one group reads directly what an operator of the other made."""
        for _ in range(3):
            before = len(self.draft.order)
            if right == "inplace" and not self.draft.made():
                await self._idiom("group=pointwise")
            if left == "inplace":
                made = [name for name, facts in self.draft.made() if 0 not in facts["shape"]]
                if not made:
                    await self._idiom("group=pointwise")
                    made = [name for name, _ in self.draft.made()]
                source = self.rng.choice(made) if made else ""
                held = await self._idiom("group=inplace", source)
            else:
                held = await self._end(left, self._last())
                tensors = [name for name, _ in self.draft.made()]
                source = next((name for name in self.draft.order[before:] if name in tensors), "")
            if held and source and await self._end(right, source, must=True):
                return True
        return False

    async def _end(self, group: str, source: str, must: bool = False) -> bool:
        """A statement whose one dispatched operator is of the group."""
        space_families = [family for family in self.plan.families if self._group(family) == group]
        if space_families and group != "cast" and self.rng.random() < 0.5:  # a cast to the same dtype does nothing
            keys = [k for family in space_families for k in self.choose(family, self.rng, _TRIES)]
            operators = [self.operators.by_key[key] for key in keys if key in self.operators.by_key]
            plain = [op for op in operators if self._dispatches(op.aten, group)]
            for operator in plain[:3]:
                if not self.proposer.allowed(operator, self.wishes):
                    continue
                found = self.proposer.propose(
                    operator, self.draft, self.wishes, self.rng, main=source, direct=must, pure=True
                )
                if found and await self.trials.accept(found):
                    return True
        if await self._idiom(f"group={group}", source):
            return True
        return not must and await self._idiom(f"group={group}")

    def _group(self, family: str) -> str:
        return default_space().group_of.get(family, "")

    def _dispatches(self, aten: Sequence[str], group: str) -> bool:
        return len(aten) == 1 and self._group(self.operators.family_of_aten(aten[0])) == group

    async def _module(self) -> bool:
        """A module among the inputs: of the families if one has any, else a small net."""
        if self.rng.random() < 0.5:
            known = [op for family in self.plan.families for op in self.operators.by_family.get(family, ())]
            modules = [op for op in known if any(form.kind == "module" for form in op.forms)]
            for operator in self.rng.sample(modules, min(2, len(modules))):
                before = len(self.draft.inputs)
                found = self.proposer.propose(operator, self.draft, self.wishes, self.rng, modules=True)
                if found and await self.trials.accept(found) and self._has_module(before):
                    return True
        return await self._idiom("group=net")

    def _has_module(self, start: int = 0) -> bool:
        return any(self.draft.live.get(name, {}).get("kind") == "module" for name, _ in self.draft.inputs[start:])

    async def _anchors(self) -> None:
        """Tensors for what is asked of dtype, shape, layout and values and not there yet, each used at once."""
        for _ in range(4):
            unmet = self._unmet()
            if not unmet:
                return
            fresh, _carried = anchor(unmet, self.rng)
            (name,) = self.draft.fresh_names(1)
            text = replace(fresh, grad=self.wishes.mode in ("backward", "train")).text(self.rng)
            answer = await self.trials.probe([[f"{name} = {text}"]])
            if answer[0]["chosen"] < 0:
                continue
            self.draft.inputs.append((name, text))
            self.draft.live.update({name: answer[0]["facts"][name]})
            if not await self._use(name):
                self.draft.inputs.pop()
                self.draft.live.pop(name)

    async def _use(self, name: str) -> bool:
        for family in (self._family(1), "pointwise_unary", "pointwise_binary", "reduction"):
            if self.rng.random() < 0.8 and await self._operator(family, main=name, direct=True):
                return True
        groups = ["group=pointwise", "group=view", "group=copy", "group=cast"]
        for group in self.rng.sample(groups, len(groups)):
            if await self._idiom(group, name):
                return True
        (target,) = self.draft.fresh_names(1)
        plain = [f"{target} = {name}.clone()", f"{target} = {name}.to(torch.float32)", f"{target} = {name} + {name}"]
        return await self.trials.accept([Candidate([], [line], target, (name,), (target,), "") for line in plain])

    def _unmet(self) -> dict[str, list[str]]:
        tensors = self.draft.tensors()
        own = {name for name, _ in self.draft.inputs}
        return self.wishes.unmet([facts for _, facts in tensors], [facts for name, facts in tensors if name in own])

    async def _missing(self) -> None:
        """What was asked and is not there: features by their idioms, depth by going on, gradients by one more."""
        await self._anchors()
        for _ in range(2):
            missing = self._unrealised()
            for key in missing:
                await self._feature(key, records=False)
            if not missing:
                break
        for feature, depth in _DEPTHS.items():
            for _ in range(2 * depth):
                deepest = max(self.draft.made(), key=lambda item: self.draft.depth.get(item[0], 0), default=("", {}))[0]
                if not self.wishes.wants(feature) or self.draft.depth.get(deepest, 0) >= depth:
                    break
                if not await self._operator(self._family(9), main=deepest, direct=True):
                    await self._idiom("group=pointwise", deepest)
        if self.wishes.mode in ("train", "eval") and not self._has_module():
            await self._idiom("group=net")
        for _ in range(4):
            if self.wishes.mode not in ("backward", "train") or self._differentiable():
                break
            floating = [(name, facts) for name, facts in self.draft.tensors() if "float" in facts["dtype"]]
            graded = [name for name, facts in floating if facts.get("requires_grad")]
            if not graded or not await self._idiom("group=smooth", self.rng.choice(graded)):
                await self.trials.accept(
                    self.proposer.by_idiom("group=smooth", self.draft, self.wishes, self.rng, fresh=True)
                )

    def _unrealised(self) -> list[str]:
        """Asked features with idioms of which the text shows nothing, or that no accepted idiom brought."""
        shown = detect(self._program(), None, self.operators.family_of_aten)
        return [key for key in self._asked() if key not in shown and key not in self.brought]

    # -- the whole program --------------------------------------------------------------------------------------

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"mode": self.draft.mode, "engine": "template"}
        if self.plan.features:
            meta["features"] = list(self.plan.features)
        if self.draft.random:
            meta["random"] = True
        if self.refusal:
            meta["refused"] = True
        return {**meta, **self.draft.meta}

    def _returns(self) -> list[str]:
        returns = self.draft.results()
        if len(returns) == 1 and (self.wishes.wants("topology=multi_result") or self.draft.as_dict):
            others = [name for name, _ in self.draft.tensors() if name not in returns and name in self.draft.order]
            others = others or [name for name, _ in self.draft.inputs if name not in returns]
            returns = [*self.rng.sample(others, min(1, len(others))), *returns]
        return returns

    def _program(self, build2: Sequence[tuple[str, str]] = ()) -> Program:
        return Program.parse(self.draft.text(self._meta(), self._returns(), build2), "<template>")

    async def _finished(self) -> Program:
        """The whole program, run once as a whole; a mode that it cannot have is given up."""
        mode = self.draft.mode
        if (mode == "backward" and not self._differentiable()) or (
            mode in ("train", "eval") and not self._has_module()
        ):
            self.draft.mode = "forward"
        returns = self._returns()
        if self.refusal:
            return await self._finished_refused(returns)
        texts: list[str] = []
        # What is traced holds for the inputs at hand alone.
        if self.draft.mode != "jit_trace" and (self.draft.mode == "dynamic" or self.wishes.wants(_SECOND)):
            second = second_inputs(self.draft.inputs, self.draft.live, self.rng)
            texts = [self.draft.text(self._meta(), returns, inputs) for inputs in second]
        texts.append(self.draft.text(self._meta(), returns))
        chosen = await self._first_that_runs(texts)
        if not chosen and mode == "jit_trace":
            self.draft.mode = "forward"
            texts = [self.draft.text(self._meta(), returns)]
            chosen = await self._first_that_runs(texts)
        if not chosen:
            # Values were drawn in another order while the program grew; where positions, divisors or masks depend on
            # them, another seed may be needed for a program that runs.
            for seed in _SEEDS:
                self.draft.seed = seed
                texts.append(self.draft.text(self._meta(), returns))
            if self.draft.mode in ("backward", "train"):
                self.draft.mode, self.draft.seed = "forward", 0
                texts.append(self.draft.text(self._meta(), returns))
            chosen = await self._first_that_runs(texts)
        if not chosen:
            raise CannotWrite(f"the program does not run as a whole: {self.why}")
        return Program.parse(chosen, "<template>")

    async def _finished_refused(self, returns: Sequence[str]) -> Program:
        """The whole program, which must end as its last statement did when it was tried."""
        text = self.draft.text(self._meta(), returns)
        (result,) = await self.trials.probe([[whole_run(text)]])
        self.why = result["errors"][0] if result["errors"] else "it is not refused as a whole"
        if self.why.partition(":")[0] != self.refusal.partition(":")[0]:
            raise CannotWrite(f"the program does not end as meant: {self.why}")
        return Program.parse(text, "<template>")

    async def _first_that_runs(self, texts: Sequence[str]) -> str:
        runs = [
            "\n".join([whole_run(text), *([whole_run(text, True)] if "def build_inputs2" in text else [])])
            for text in texts
        ]
        (result,) = await self.trials.probe([runs])
        self.why = result["errors"][-1] if result["errors"] else ""
        return texts[result["chosen"]] if result["chosen"] >= 0 else ""

    def _differentiable(self) -> bool:
        return any(
            self.draft.live[name].get("requires_grad") for name in self.draft.results() if name in self.draft.live
        )


__all__ = ["CannotWrite", "ChooseOperators", "Prober", "TemplateEngine", "Written"]
