"""A pasted bug report as a program: retrieve, plan, generate, validate in three steps, in a bounded number of tries.

The steps: static check (may it run?), eager run (does it run?), and the reported symptom (does compiled code show it?).
A report that is not reproduced is told so, with what each try came to: it may be fixed in this torch, need other
hardware, or be beyond the model.
"""

from __future__ import annotations

import random
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from fuzzer.examine import Examined
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.llm import free, retrieve
from fuzzer.llm.free import Unfit
from fuzzer.llm.model import Model
from fuzzer.llm.prompts import Context, render, writing_prompt
from fuzzer.llm.question import Question
from fuzzer.llm.schema import NoJson, choice, listing, read_json, record
from fuzzer.program import Program
from fuzzer.verdict import Kind

#: What a report says is wrong → verdicts that show it.
SYMPTOMS: dict[str, frozenset[Kind]] = {
    "wrong result": frozenset({Kind.WRONG_VALUE, Kind.WRONG_MUTATION}),
    "wrong gradient": frozenset({Kind.WRONG_GRADIENT, Kind.WRONG_VALUE}),
    "wrong dtype, shape or strides": frozenset({Kind.METADATA}),
    "error while compiling": frozenset({Kind.COMPILE_ERROR}),
    "compiled code accepts what eager refuses": frozenset({Kind.MISSING_CHECK}),
    "compiled code refuses what eager accepts": frozenset({Kind.EXTRA_CHECK, Kind.COMPILE_ERROR}),
    "crash": frozenset({Kind.CRASH, Kind.EAGER_CRASH, Kind.EAGER_INTERNAL_ASSERT}),
    "hang or very slow compilation": frozenset({Kind.HANG, Kind.SLOW_COMPILE}),
}
COMPONENTS = (
    "dynamo", "aotautograd", "decomposition", "fake tensors", "inductor lowering", "inductor code generation",
    "eager operator", "other",
)  # fmt: skip

CLASSIFICATION = record(
    compiled_differs={"type": "boolean"},
    symptom=choice(tuple(SYMPTOMS)),
    component=choice(COMPONENTS),
    operators=listing({"type": "string"}, 6),
    summary={"type": "string"},
)

_LONGEST = 6000  # characters of a report that are shown: scripts stand at its beginning
_OPERATOR = re.compile(r"\b(?:torch\.|F\.|aten[.:]+)([A-Za-z_][\w.]*)")
_SYSTEM = "You sort bug reports about torch.compile. You answer in the asked form only."


@dataclass(frozen=True)
class Classified:
    """What the model read in a report. ``summary`` is in the language of the settings."""

    compiled_differs: bool
    symptom: str  # one of SYMPTOMS
    component: str  # one of COMPONENTS
    operators: tuple[str, ...]
    summary: str


@dataclass(frozen=True)
class Attempt:
    """``stage``: static | eager | symptom, the step that it got to; ``why`` it ended there; "" when it passed."""

    stage: str
    why: str
    program: Program | None = None


@dataclass(frozen=True)
class Reproduced:
    """``program`` shows the reported symptom; None where no try did. ``closest`` ran, at least."""

    program: Program | None
    classified: Classified
    attempts: tuple[Attempt, ...]
    verdict: str = ""

    @property
    def closest(self) -> Program | None:
        ran = [attempt.program for attempt in self.attempts if attempt.stage == "symptom"]
        return ran[-1] if ran else None


Run = Callable[[Program], Awaitable[Examined]]


async def classify(model: Model, issue: str) -> Classified:
    """Read a report. Raises ``NoAnswer``, and ``NoJson`` when the answer is of no use."""
    user = render("classify_issue", issue=issue[:_LONGEST], language=model.settings.language, tasks={}, causes={})
    question = Question("classify_issue", _SYSTEM, user, CLASSIFICATION, model.settings.answer_tokens, 0.0)
    data = read_json((await model.ask(question)).text, CLASSIFICATION)
    return Classified(**{**data, "operators": tuple(data["operators"])})


async def reproduce(
    model: Model, issue: str, operators: Operators, space: FeatureSpace, run: Run, tries: int = 5
) -> Reproduced:
    """A program that shows what the report says, or an honest account of why there is none.

    Raises:
        NoAnswer: the model cannot be asked.
        NoJson: it cannot sort the report.
    """
    classified = await classify(model, issue)
    context = _context(issue, classified, operators, space, model.settings.language)
    attempts: list[Attempt] = []
    text = error = ""
    for number in range(tries):
        if error and text:
            mend = Context(form="free", extra={"program": text, "error": error})
            system, user = writing_prompt("repair", mend, model.settings.context_tokens)
        else:
            system, user = writing_prompt("reproduce", context, model.settings.context_tokens + _LONGEST // 3)
        question = Question("reproduce", system, user, None, model.settings.answer_tokens, 0.3 + 0.1 * number, number)
        answer = await model.ask(question)
        text = ""
        try:
            text = free.extract(answer.text)
            program = free.finished(free.check(text, operators.by_key), ())
        except Unfit as unfit:
            error = str(unfit)
            attempts.append(Attempt("static", error))
            continue
        seen = await run(program)
        attempt = _judged(seen, classified)
        attempts.append(attempt)
        if not attempt.why:
            return Reproduced(program, classified, tuple(attempts), f"{seen.verdict.kind.value}: {seen.verdict.reason}")
        error = attempt.why
    return Reproduced(None, classified, tuple(attempts))


def _judged(seen: Examined, classified: Classified) -> Attempt:
    verdict, wanted = seen.verdict, SYMPTOMS[classified.symptom]
    if verdict.kind in wanted:
        return Attempt("symptom", "", seen.program)
    if verdict.kind is Kind.INVALID:
        return Attempt("eager", f"Eager execution refuses it: {verdict.reason}", seen.program)
    if verdict.kind is Kind.PASS:
        why = f"It runs, and compiled code agrees with eager. The report speaks of: {classified.symptom}."
    else:
        why = f"It shows {verdict.kind.value} ({verdict.reason}). The report speaks of: {classified.symptom}."
    return Attempt("symptom", why, seen.program)


def _context(issue: str, classified: Classified, operators: Operators, space: FeatureSpace, language: str) -> Context:
    """Knowledge about the operators that the report names."""
    by_name = {operator.name: operator.key for operator in operators}
    named = [name.rstrip(".") for name in _OPERATOR.findall(issue)]
    named += [name.removeprefix("torch.") for name in classified.operators]
    names = [form for name in named for form in (name, f"nn.functional.{name}") if form in by_name]
    keys = list(dict.fromkeys(by_name[name] for name in names))[:6]
    families = sorted({operators.by_key[key].family for key in keys})
    vector = [f"op={name}" for name in dict.fromkeys(names)]
    plan = f"{classified.summary} Symptom: {classified.symptom}."
    return Context(
        form="free",
        entries=retrieve.entries(vector, families, space, random.Random(0)),
        operators=retrieve.examples(operators, keys),
        language=language,
        extra={"issue": issue[:_LONGEST], "plan": " ".join(plan.split())[:400]},
    )


__all__ = ["Attempt", "Classified", "NoJson", "Reproduced", "classify", "reproduce"]
