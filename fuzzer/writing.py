"""Programs written and run eagerly, never compiled: what the engines are worth, and a folder of programs.

``Writing`` draws plans without learning from them, lets an engine write each, runs it in a forked child; ``Tally`` is
the pure account of it. Every feature and every mutation has the same chance, so shares are those of the engines.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import statistics
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.engines.mutate import MUTATIONS, MutationContext, mutate
from fuzzer.engines.template import CannotWrite, TemplateEngine
from fuzzer.engines.view import ProgramView, ViewError
from fuzzer.engines.wishes import askable
from fuzzer.features.detect import default_space, detect
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import is_to_be_refused
from fuzzer.observation import Observation
from fuzzer.policy.corpus import Corpus
from fuzzer.policy.plan import SPLICE, Plan
from fuzzer.policy.schedule import Schedule
from fuzzer.program import Program
from fuzzer.seeds.check import refusal
from fuzzer.store.atomic import write_text
from fuzzer.worker import Target, Worker, WorkerLost, WorkerOptions

#: A feature realised less often than this counts as hardly ever realised: its arm would learn nothing.
RARE = 50
#: Of the programs of a run with mutation, one in so many is written by the template engine, and feeds the others.
_FRESH_EVERY = 5
_POOL = 2000  # seeds remembered; beyond, the oldest go
_RECYCLE = 3000  # programs after which a fork server is replaced: what leaks into it is gone
#: Exceptions whose text in eager says that the program ended the child, not that eager refused it.
_OUTCOMES = ("valid", "refused", "invalid", "died")


@dataclass(frozen=True)
class Ran:
    """One program and what became of it. ``outcome``: ``valid``; ``refused``, by eager, as was meant; ``invalid``;
    ``died``: eager took the child with it. ``why``: the class of reasons where it is not valid."""

    program: Program
    writer: str  # "template", "mutate:insert_view"
    asked: tuple[str, ...]
    realised: frozenset[str]
    outcome: str
    why: str
    seconds: float  # of writing, probing included
    operators: tuple[str, ...] = ()  # dispatched, "aten.add"
    catalogue: tuple[str, ...] = ()  # keys of the catalogue that the template engine used
    undefined: tuple[str, ...] = ()  # why operations that ran have no defined result


@dataclass
class Tally:
    """Counts over programs."""

    outcomes: dict[str, Counter[str]] = field(default_factory=dict)  # writer → outcome → number
    unwritten: Counter[str] = field(default_factory=Counter)  # writer → plans that came to nothing
    asked: Counter[str] = field(default_factory=Counter)
    met: Counter[str] = field(default_factory=Counter)  # of those asked
    realised: Counter[str] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    catalogue: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str]] = field(default_factory=Counter)  # (writer, why)
    seconds: dict[str, list[float]] = field(default_factory=dict)  # engine → of writing
    undefined: Counter[str] = field(default_factory=Counter)  # why → programs

    def add(self, ran: Ran) -> None:
        """Take in one program; what never ran realises nothing."""
        self.outcomes.setdefault(ran.writer, Counter())[ran.outcome] += 1
        self.seconds.setdefault(ran.writer.partition(":")[0], []).append(ran.seconds)
        self.undefined.update(ran.undefined)
        if ran.why and ran.outcome != "refused":
            self.reasons[ran.writer, ran.why] += 1
        # A mutation promises nothing; of a program that eager refuses, the operators are not seen.
        if ran.writer == "template" and ran.outcome != "refused":
            self.asked.update(ran.asked)
            self.met.update(set(ran.asked) & ran.realised)
        if ran.outcome in ("valid", "refused"):
            self.realised.update(ran.realised)
            self.operators.update(ran.operators)
            self.catalogue.update(ran.catalogue)

    def shares(self, writers: Iterable[str]) -> dict[str, Any]:
        """Counts and shares of outcomes over some writers. ``valid_or_refused`` is what ran as it was meant to."""
        total: Counter[str] = Counter()
        for writer in writers:
            total.update(self.outcomes.get(writer, Counter()))
        count = sum(total.values())
        named = {name: total[name] for name in _OUTCOMES}
        return {"programs": count, **named, "valid_or_refused": _share(total["valid"] + total["refused"], count)}

    def summary(self, features: Sequence[str], rare: int = RARE) -> dict[str, Any]:
        """All figures as plain data. ``features``: ids of the space, of which the rare are told."""
        engines: dict[str, list[str]] = {}
        for writer in sorted({*self.outcomes, *self.unwritten}):
            engines.setdefault(writer.partition(":")[0], []).append(writer)
        conformity = {feature: _share(self.met[feature], count) for feature, count in sorted(self.asked.items())}
        return {
            "engines": {
                engine: {
                    **self.shares(writers),
                    "unwritten": sum(self.unwritten[writer] for writer in writers),
                    "write_ms_median": round(1000 * statistics.median(self.seconds.get(engine) or [0.0]), 1),
                }
                for engine, writers in engines.items()
            },
            "mutations": {
                writer.partition(":")[2]: {**self.shares([writer]), "unwritten": self.unwritten[writer]}
                for writer in engines.get("mutate", ())
            },
            "conformity": round(statistics.mean(conformity.values()), 4) if conformity else None,
            "features": {
                feature: {
                    "asked": self.asked[feature],
                    "conformity": conformity.get(feature),
                    "realised": self.realised[feature],
                }
                for feature in features
            },
            "features_under_60_percent": [name for name, share in conformity.items() if share < 0.6],
            "features_rare": [feature for feature in features if self.realised[feature] < rare],
            "operators_executed": len(self.operators),
            "operators_of_catalogue": len(self.catalogue),
            "undefined": dict(self.undefined.most_common()),
            "reasons": [
                {"writer": writer, "why": why, "count": count} for (writer, why), count in self.reasons.most_common(40)
            ],
        }


def _share(part: int, whole: int) -> float:
    return round(part / whole, 4) if whole else 0.0


def outcome(program: Program, seen: Observation) -> tuple[str, str]:
    """(outcome, why) of an eager run; see ``Ran``."""
    why, detail = refusal(seen)
    if not why:
        return "valid", ""
    if seen.end.how in ("signal", "lost"):
        return "died", why
    if is_to_be_refused(program):
        return "refused", why
    return "invalid", f"{why}: {_first_words(detail)}"


def _first_words(text: str) -> str:
    """Enough of a message to count by."""
    return " ".join("N" if any(c.isdigit() for c in word) else word for word in text.split()[:9])


class Writing:
    """Writes programs and runs them eagerly, on any number of workers.

    Args:
        seed: of all that is drawn; with one worker the same programs are written twice.
        seeds: programs to mutate from; empty: template programs only.
        out: folder for the programs, ``000001.py`` …; None keeps none.
    """

    def __init__(self, operators: Operators, seed: int, seeds: Sequence[Program] = (), out: Path | None = None) -> None:
        keys = operators.choosable()
        self.operators = operators
        self.engine = TemplateEngine(operators)
        self.schedule = Schedule(default_space(), sorted(keys), keys, [], seed, askable=askable(), uniform=True)
        self.corpus = Corpus()  # stays empty: nothing is learnt here
        self.rng = random.Random(f"{seed} mutations")
        self.mutating = bool(seeds)
        self.pool = list(seeds)
        self.out = out
        self.tally = Tally()
        self.written = 0
        self.stopping = False
        self._names: list[str] = []  # mutations still to come in this round

    async def run(
        self, count: int, target: Target, folder: Path, workers: int, progress: Callable[[Tally, int], None]
    ) -> Tally:
        """Write ``count`` programs, or fewer where ``stopping`` is set meanwhile.

        Raises:
            TargetRefused: the target cannot start.
        """
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
        tasks = [
            asyncio.ensure_future(self._serve(count, Worker(target, folder / f"worker-{n}", _OPTIONS), progress))
            for n in range(max(1, min(workers, count)))
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        return self.tally

    async def _serve(self, count: int, worker: Worker, progress: Callable[[Tally, int], None]) -> None:
        try:
            await worker.start()
            while self.written < count and not self.stopping:
                self.written += 1
                number = self.written
                with contextlib.suppress(WorkerLost):  # it starts afresh by itself; the plan alone is lost
                    await self._one(number, worker)
                progress(self.tally, number)
                if worker.programs >= _RECYCLE:
                    await worker.stop()
                    await worker.start()
        finally:
            await worker.stop()

    async def _one(self, number: int, worker: Worker) -> None:
        started = time.perf_counter()
        mutant = self.mutating and number % _FRESH_EVERY
        plan, program, catalogue = self._mutant() if mutant else await self._fresh(worker)
        seconds = time.perf_counter() - started
        if program is None:
            self.tally.unwritten[plan.writer] += 1
            return
        seen = await worker.execute(program, options={"only_eager": True}, coverage=False)
        ended, why = outcome(program, seen)
        packets = {".".join(name.split(".")[:2]) for name in seen.operators}
        ran = Ran(
            program=program,
            writer=plan.writer,
            asked=plan.features,
            realised=detect(program, seen, self.operators.family_of_aten),
            outcome=ended,
            why=why,
            seconds=seconds,
            operators=tuple(sorted(packets)),
            catalogue=catalogue,
            undefined=tuple(sorted({str(op["undefined"]) for op in seen.ops if op.get("undefined")})),
        )
        self.tally.add(ran)
        if ended == "valid" and self.mutating:
            self.pool.append(program)
            del self.pool[: max(0, len(self.pool) - _POOL)]
        if self.out is not None:
            write_text(self.out / f"{number:06}{'' if ended == 'valid' else f'-{ended}'}.py", program.text)

    async def _fresh(self, worker: Worker) -> tuple[Plan, Program | None, tuple[str, ...]]:
        plan = self.schedule.next(self.corpus)
        try:
            written = await self.engine.write(plan, self.schedule.choose_operators, worker)
        except CannotWrite:
            return plan, None, ()
        return plan, written.program, written.operators

    def _mutant(self) -> tuple[Plan, Program | None, tuple[str, ...]]:
        """Every mutation in turn, in an order drawn anew each round."""
        self._names = self._names or self.rng.sample(sorted(MUTATIONS), len(MUTATIONS))
        name = self._names.pop()
        seed, other = self.rng.choice(self.pool), self.rng.choice(self.pool)
        features = self.schedule.vectors.draw(self.rng, 1, 2)
        donor = None
        if name == SPLICE:
            with contextlib.suppress(ViewError):
                donor = ProgramView.of(other)
        random_number = self.rng.getrandbits(62)
        plan = Plan(
            number=self.written,
            engine="mutate",
            operator=name,
            seed=seed.id,
            donor=other.id if name == SPLICE else "",
            features=features,
            random=random_number,
        )
        context = MutationContext(random.Random(random_number), self.operators, donor, features)
        return plan, mutate(seed, name, context), ()


_OPTIONS = WorkerOptions(coverage=(), warm=False)
