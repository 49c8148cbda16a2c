"""Step lists: inputs and operator calls under a JSON schema, made runnable by probing.

The model says which operators, in which order, on what. The probe has the last word: a call that is refused as written
is tried with the arguments of a recorded call around the same tensor, and left out when that fails too.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from fuzzer.engines.candidates import Proposer
from fuzzer.engines.checks import whole_run
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.second import second_inputs
from fuzzer.engines.template import CannotWrite, Written
from fuzzer.engines.tensors import COMPLEX, FLOATS, LAYOUTS, VALUES, Fresh
from fuzzer.engines.trials import Died, Prober, Trials
from fuzzer.engines.wishes import Wishes
from fuzzer.features.detect import detect
from fuzzer.knowledge.operators import Operator, Operators
from fuzzer.llm.schema import NoJson, Schema, choice, listing, read_json, record
from fuzzer.program import Program

INPUTS = ("x", "y", "z", "w")
RESULTS = ("a", "b", "c", "d", "e", "f", "g", "h")
_DTYPES = (*FLOATS, "int64", "int32", "uint8", "bool", "complex64")
_MOST_OPERATORS = 16  # in the schema: more make a grammar that small servers compile slowly
_LARGEST = 1 << 14  # elements of an input
_SEEDS = (0, 1, 2, 3, 5)


def schema(operators: Sequence[str], keywords: Sequence[str], brief: bool = False) -> dict[str, Any]:
    """The schema of an answer. ``operators`` and ``keywords`` are what it may name; ``brief``: two or three calls."""
    plain: list[Schema] = [{"type": "integer"}, {"type": "number"}, {"type": "boolean"}]
    numbers = listing({"type": "integer"}, 4)
    argument = {"anyOf": [choice([*INPUTS, *RESULTS]), *plain, numbers]}
    value = {"anyOf": [*plain, numbers]}
    tensor = record(
        name=choice(INPUTS),
        shape=listing({"type": "integer"}, 5),
        dtype=choice(_DTYPES),
        layout=choice(LAYOUTS),
        values=choice(("normal", *VALUES)),
    )
    step = record(
        op=choice(list(operators)[:_MOST_OPERATORS]),
        args=listing(argument, 4),
        kwargs=listing(record(name=choice(keywords or ("dim",)), value=value), 3),
        result=choice(RESULTS),
    )
    return record(inputs=listing(tensor, 2 if brief else 3, 1), steps=listing(step, 3 if brief else 6, 2))


def keywords(operators: Operators, keys: Sequence[str], most: int = 20) -> list[str]:
    """Keyword arguments that recorded calls of these operators have."""
    found = [name for key in keys if key in operators.by_key for name in sorted(operators.by_key[key].keywords)]
    return [name for name in dict.fromkeys(found) if name not in ("out", "device", "generator", "dtype")][:most]


@dataclass(frozen=True)
class Step:
    """One call. ``args`` are names or plain values."""

    operator: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: str


@dataclass(frozen=True)
class StepList:
    """An answer in this form. ``inputs``: name → the tensor to make."""

    inputs: Mapping[str, Fresh]
    steps: tuple[Step, ...]

    @classmethod
    def parse(cls, text: str, form: Schema) -> StepList:
        """Raises ``NoJson`` when the answer does not fit the schema."""
        data = read_json(text, form)
        inputs: dict[str, Fresh] = {}
        for item in data["inputs"]:  # a name given twice means the next one that is free
            free = [item["name"], *(name for name in INPUTS if name not in inputs)]
            inputs[next(name for name in free if name not in inputs)] = _fresh(item)
        steps = tuple(
            Step(
                item["op"],
                tuple(item["args"]),
                {entry["name"]: entry["value"] for entry in item["kwargs"]},
                item["result"],
            )
            for item in data["steps"]
        )
        return cls(inputs, steps)


def _fresh(item: Mapping[str, Any]) -> Fresh:
    shape, size = [], 1
    for extent in item["shape"]:
        extent = min(max(int(extent), 0), max(1, _LARGEST // max(size, 1)))
        shape.append(extent)
        size *= max(extent, 1)
    values = "" if item["values"] == "normal" else item["values"]
    return Fresh(tuple(shape), item["dtype"], layout=item["layout"], values=values)


@dataclass(frozen=True)
class Built(Written):
    """A program from a step list. ``kept``: steps that became statements, as written or repaired; of ``steps``."""

    steps: int = 0
    kept: int = 0
    as_written: int = 0


class StepWriter:
    """Turns a step list into a program."""

    def __init__(self, operators: Operators, proposer: Proposer | None = None) -> None:
        self.operators = operators
        self.proposer = proposer or Proposer(operators)

    async def write(self, steps: StepList, features: Sequence[str], seed: int, prober: Prober) -> Built:
        """A program that ran eagerly as a whole.

        Raises:
            CannotWrite: no step held, or the whole does not run.
            WorkerLost: the prober's server died.
        """
        return await _Building(self, steps, features, seed, prober).write()


class _Building:
    def __init__(self, writer: StepWriter, steps: StepList, features: Sequence[str], seed: int, prober: Prober) -> None:
        self.operators, self.proposer = writer.operators, writer.proposer
        self.steps, self.features = steps, tuple(features)
        self.rng = random.Random(seed)
        self.wishes = Wishes.of(features, self.proposer.idioms)
        self.draft = Draft(mode=self.wishes.mode if self.wishes.mode in ("backward", "dynamic") else "forward")
        self.trials = Trials(self.draft, self.wishes, self.proposer, prober, self.rng)
        self.names: dict[str, str] = {}  # the model's names → those of the draft
        self.as_written = 0

    async def write(self) -> Built:
        await self.trials.start()
        kept = 0
        try:
            for name, fresh in self.steps.inputs.items():
                await self._input(name, fresh)
            for step in self.steps.steps:
                kept += await self._step(step)
            if not self.draft.body:
                raise CannotWrite("none of the steps held")
            await self._missing()
            self._drop_unread()
            program = await self._finished()
        except Died:
            program = self._program()
        trials = self.trials
        used = tuple(self.draft.operators)
        numbers = (trials.proposals, trials.refused, trials.died, len(self.steps.steps), kept, self.as_written)
        return Built(program, used, *numbers)

    async def _input(self, name: str, fresh: Fresh) -> None:
        graded = self.draft.mode == "backward" and fresh.dtype in (*FLOATS, *COMPLEX)
        (working,) = self.draft.fresh_names(1)
        plain = Fresh(fresh.shape, fresh.dtype, grad=graded)
        asked = Fresh(fresh.shape, fresh.dtype, layout=fresh.layout, values=fresh.values, grad=graded)
        for text in dict.fromkeys((asked.text(self.rng), plain.text(self.rng))):  # not every layout fits every shape
            (answer,) = await self.trials.probe([[f"{working} = {text}"]])
            if answer["chosen"] >= 0 and answer["facts"].get(working, {}).get("kind") == "tensor":
                self.draft.inputs.append((working, text))
                self.draft.live[working] = answer["facts"][working]
                self.names[name] = working
                return

    async def _step(self, step: Step) -> bool:
        operator = self.operators.by_key.get(step.operator)
        if operator is None or not self.proposer.allowed(operator, self.wishes):
            return False
        for candidate in self._literal(step, operator):
            if await self.trials.accept([candidate]):
                self.as_written += 1
                self._bind(step)
                return True
        main = next((self.names[arg] for arg in step.args if isinstance(arg, str) and arg in self.names), "")
        main = main or next(reversed(self.names.values()), "")
        # A recorded call is drawn anew each time; the last may stand alone, which always held where it was recorded.
        for reads in (main, main, ""):
            found = self.proposer.propose(operator, self.draft, self.wishes, self.rng, main=reads)
            if found and await self.trials.accept(found):
                self._bind(step)
                return True
        return False

    def _bind(self, step: Step) -> None:
        """The model's name means the latest tensor that was made."""
        made = self.draft.made()
        if made:
            self.names[step.result] = made[-1][0]

    def _literal(self, step: Step, operator: Operator) -> list[Candidate]:
        """The call as the model wrote it, in the first forms that have a text for it; names that are not bound drop
        out. Integers that stand for tensors cannot be told here: the probe refuses them."""
        reads = [self.names[arg] for arg in step.args if isinstance(arg, str) and arg in self.names]
        if not reads:
            return []
        args = [self.names.get(arg, "") if isinstance(arg, str) else _literal_text(arg) for arg in step.args]
        kwargs = {name: _literal_text(value) for name, value in step.kwargs.items() if name in operator.keywords}
        found = []
        for form in operator.forms:
            if form.kind not in ("function", "method", "operator"):
                continue
            try:
                text = form.render([arg for arg in args if arg], kwargs)
            except ValueError:
                continue
            (target,) = self.draft.fresh_names(1)
            line = f"{target} = {text}"
            found.append(Candidate([], [line], target, tuple(reads), (target,), operator.key, operator.random))
        return found[:2]

    async def _missing(self) -> None:
        """Asked features of which nothing is there yet, by their idioms: step lists have no words for most of them."""
        idioms = self.proposer.idioms
        for key in self.wishes.idioms:
            plain = [idiom for idiom in idioms.of(key) if not idiom.code]
            if plain:
                chosen = self.rng.choice(plain)
                self.draft.merge(dict(chosen.meta))
                self.draft.as_dict |= chosen.returns == "dict"
        shown = detect(self._program(), None, self.operators.family_of_aten)
        for key in self.wishes.idioms:
            if key not in shown and any(idiom.code for idiom in idioms.of(key)):
                await self.trials.accept(self.proposer.by_idiom(key, self.draft, self.wishes, self.rng))

    # -- the whole ------------------------------------------------------------------------------------------------

    def _drop_unread(self) -> None:
        """Inputs that nothing reads say nothing."""
        body = "\n".join(self.draft.body)
        kept = [(name, text) for name, text in self.draft.inputs if name in body]  # working names never overlap
        self.draft.inputs = kept or self.draft.inputs[:1]

    def _program(self) -> Program:
        return Program.parse(self.draft.text(self._meta(), self.draft.results()), "<steps>")

    def _meta(self) -> dict[str, Any]:
        meta: dict[str, Any] = {"mode": self.draft.mode, "engine": "llm"}
        if self.features:
            meta["features"] = list(self.features)
        if self.draft.random:
            meta["random"] = True
        return {**meta, **self.draft.meta}

    async def _finished(self) -> Program:
        """The first variant that runs as a whole; a mode that the program cannot have is given up."""
        texts: list[str] = []
        for mode in dict.fromkeys((self.draft.mode, "forward")):
            self.draft.mode = mode
            for seed in _SEEDS:
                self.draft.seed = seed
                builders: list[Any] = [()]
                if mode == "dynamic":
                    builders = second_inputs(self.draft.inputs, self.draft.live, self.rng)
                texts += [self.draft.text(self._meta(), self.draft.results(), second) for second in builders]
        runs = [
            "\n".join([whole_run(text), *([whole_run(text, True)] if "def build_inputs2" in text else [])])
            for text in texts
        ]
        (result,) = await self.trials.probe([runs])
        if result["chosen"] < 0:
            why = result["errors"][-1] if result["errors"] else "no reason given"
            raise CannotWrite(f"the program does not run as a whole: {why}")
        return Program.parse(texts[result["chosen"]], "<steps>")


def _literal_text(value: Any) -> str:
    """Python text of a plain value; lists as tuples, as sizes are written."""
    if isinstance(value, list):
        return f"({', '.join(map(str, value))}{',' if len(value) == 1 else ''})"
    return repr(value)


__all__ = ["Built", "NoJson", "Step", "StepList", "StepWriter", "keywords", "schema"]
