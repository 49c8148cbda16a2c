"""From an order to a question, and from an answer to something that a worker can run."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from fuzzer.llm import free, retrieve, steps
from fuzzer.llm.free import Unfit
from fuzzer.llm.host import Host
from fuzzer.llm.job import Job
from fuzzer.llm.prompts import WRITING, Context, tokens, writing_prompt
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.schema import NoJson
from fuzzer.llm.settings import Settings
from fuzzer.llm.steps import StepList
from fuzzer.policy.plan import Order

_OPERATORS = 12
_TEMPERATURE = 0.8
_SEED_TOKENS = 900  # a longer seed is not shown: there are shorter ones


class Author:
    """Writes prompts and reads answers. Same host state and order, same question."""

    def __init__(self, settings: Settings, forms: tuple[str, ...], lowerings: Callable[[], str] = lambda: "") -> None:
        """``forms``: those of ``prompts.FORMS`` that are in use; ``lowerings``: text of the target's lowering.py."""
        self.settings, self.forms, self.lowerings = settings, forms, lowerings

    def arms(self, host: Host) -> list[str]:
        off = set() if host.state.schedule.plateau.reached else {"plateau"}
        off |= set() if host.state.knowledge.patterns else {"transfer"}
        families = [name for name in WRITING if name not in off]
        return [f"{family}:{form}" for family in families for form in self.forms]

    def question(self, job: Job, host: Host, brief: bool = False) -> Question:
        """The question of the job's next try; fills in what the job's prompt offers. ``brief``: a short prompt for a
        short answer, of a slow endpoint."""
        context = self._context(job, host, brief)
        family = job.order.family
        if job.error and job.order.form == "free":
            family = "repair"
            context = self._with(context, program=job.text, error=job.error)
        elif family == "mutate" and (not context.seed or tokens(context.seed) > _SEED_TOKENS):
            family = "fresh"
        most = self.settings.context_tokens // 3 if brief else self.settings.context_tokens
        system, user = writing_prompt(family, context, most)
        return Question(
            family,
            system,
            user,
            job.schema if job.order.form == "steps" else None,
            self.settings.answer_tokens,
            _TEMPERATURE,
            (job.order.random + job.tries) % (1 << 31),
        )

    @staticmethod
    def _with(context: Context, **extra: str) -> Context:
        return replace(context, extra=extra, entries=(), operators=())

    def _context(self, job: Job, host: Host, brief: bool) -> Context:
        order, operators, space = job.order, host.operators, host.state.space
        rng = random.Random(order.random)
        modes = [name.partition("=")[2] for name in order.features if name.startswith("mode=")]
        entry, near = None, ""
        keys = self._keys(order, host, rng)
        unreached: tuple[dict[str, str], ...] = ()
        if order.family == "transfer":
            entry = retrieve.pattern(order.features, order.families, rng, host.state.knowledge)
            near = retrieve.neighbour(operators, keys, host.state.used, rng)
            keys = [near, *keys] if near else keys
        elif order.family == "plateau":
            never = retrieve.unreached(operators, host.executed, rng)
            keys = [*never, *keys]
            unreached = self._lowered(never, host)
        shown = retrieve.examples(operators, list(dict.fromkeys(keys))[:_OPERATORS])
        job.operators = tuple(item.key for item in shown)
        if order.form == "steps":
            job.schema = steps.schema(job.operators or ("sin",), steps.keywords(operators, job.operators), brief)
        return Context(
            form=order.form,
            mode=modes[0] if modes and modes[0] != "jit_trace" else "forward",
            features=retrieve.wishes(order.features, space),
            entries=retrieve.entries(order.features, order.families, space, rng, knowledge=host.state.knowledge),
            operators=shown,
            seed=host.text(order.seed).strip(),
            pattern=entry,
            neighbour=near,
            unreached=unreached,
            language=self.settings.language,
        )

    def _keys(self, order: Order, host: Host, rng: random.Random) -> list[str]:
        """Operators of the order's families, the best of each first."""
        families = order.families or ("pointwise_unary",)
        each = max(2, _OPERATORS // len(families))
        chosen = [host.choose_operators(family, rng, each) for family in families]
        return [keys[place] for place in range(each) for keys in chosen if place < len(keys)]

    def _lowered(self, keys: list[str], host: Host) -> tuple[dict[str, str], ...]:
        packets = [name for key in keys for name in host.operators.by_key[key].aten[:1]]
        found = retrieve.lowering_sources(self.lowerings(), packets)
        return tuple({"name": name, "source": found.get(name, "")} for name in packets)

    def accept(self, job: Job, answer: Answer, host: Host) -> None:
        """Read the answer into the job.

        Raises:
            Unfit: it is no program, or may not run; the message is for the repair prompt.
        """
        job.text, job.error = answer.text, ""
        if job.order.form == "steps":
            assert job.schema is not None
            try:
                job.steps = StepList.parse(answer.text, job.schema)
            except NoJson as none:
                raise Unfit(str(none)) from None
            return
        job.text = free.extract(answer.text)
        program = free.check(job.text, host.operators.by_key)
        lost = free.missing(program, job.order.features, host.state.space, host.operators.family_of_aten)
        if lost and job.tries < 2:  # once: without them it is still a program
            words = "; ".join(item.words for item in retrieve.wishes(lost, host.state.space))
            raise Unfit(f"the program does not have what was asked: {words}")
        parents = (job.order.seed,) if job.order.seed else ()
        job.program = free.finished(program, job.order.features, parents)
