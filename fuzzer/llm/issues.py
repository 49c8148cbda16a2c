"""Issues of a tracker read by a model, in tiers: screen many cheaply, classify those that matter, guess at root causes.

Each tier asks only about what the one before let through. Answers are cached by prompt, so an import that was ended by
its budget goes on where it stopped, and one that is repeated costs nothing. Nothing of it is taken for true: a sample
is proposed for a person to check, and how often model, rules and person agree is computed.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from fuzzer.knowledge.issues import CAUSES, TASKS, UNKNOWN, Issue
from fuzzer.knowledge.issues import classify as by_rules
from fuzzer.llm.explain import Hypothesis, guess
from fuzzer.llm.from_issue import CLASSIFICATION
from fuzzer.llm.model import Model, NoAnswer
from fuzzer.llm.prompts import render
from fuzzer.llm.question import Question
from fuzzer.llm.schema import NoJson, Schema, choice, listing, read_json, record

#: What the classes mean, in the words of the prompt.
TASK_WORDS: Mapping[str, str] = {
    "operator_mapping": "an operator becomes the wrong one: decomposition, lowering, overload, fallback",
    "shape_inference": "shapes, strides, dtypes or symbolic sizes are derived wrongly",
    "folding_precision": "constant folding, casts, precision, order of accumulation, NaN and infinities",
    "control_flow": "branches, loops, closures, guards, graph breaks, side effects of Python",
    "unsupported_operator": "an operator, dtype or layout has no implementation",
    "attribute_handling": "arguments, defaults and their checks",
    "memory_layout": "aliases, views, in-place changes, memory formats",
    "code_generation": "the generated C++ or Triton code is wrong or does not compile",
}
CAUSE_WORDS: Mapping[str, str] = {
    "semantics_misaligned": "the compiler's idea of the operator differs from eager's",
    "version_drift": "it worked before a change on either side",
    "boundary": "only at an edge: empty, zero, negative, extreme, overflow",
    "missing_test": "the combination was never tested",
    "narrow_fix": "an earlier fix covered only part of it",
}
TAXONOMY = record(**CLASSIFICATION["properties"], task=choice((*TASKS, UNKNOWN)), cause=choice((*CAUSES, UNKNOWN)))

_SYSTEM = "You sort bug reports about torch.compile. You answer in the asked form only."
_TOGETHER = 8  # issues of one screening question
_GLANCE = 500  # characters of a body that screening sees
_LONGEST = 6000  # characters that classification sees
_SAMPLE, _SHARE = 5, 0.05  # for a person: a twentieth, at least five
_SEED = 8  # of the sample: the same issues give the same one


@dataclass(frozen=True)
class Read:
    """What the model says of one issue; fields of tiers that were not reached are empty."""

    number: int
    relevant: bool | None = None  # screening
    task: str = ""
    cause: str = ""
    compiled_differs: bool | None = None
    symptom: str = ""
    component: str = ""
    operators: tuple[str, ...] = ()
    summary: str = ""
    hypothesis: Hypothesis | None = None

    def to_map(self) -> dict[str, Any]:
        plain = {name: value for name, value in vars(self).items() if value not in (None, "", ())}
        if self.hypothesis is not None:
            plain["hypothesis"] = dict(vars(self.hypothesis))
        return plain


@dataclass
class Reading:
    """All issues by number. ``ended``: why the model could not be asked any more; ``useless``: questions in vain."""

    issues: dict[int, Read] = field(default_factory=dict)
    ended: str = ""
    useless: int = 0

    def counts(self) -> dict[str, int]:
        """Issues that each tier was done for; ``issues`` is all of them."""
        rows = self.issues.values()
        return {
            "issues": len(rows),
            "screened": sum(row.relevant is not None for row in rows),
            "relevant": sum(row.relevant is True for row in rows),
            "classified": sum(bool(row.task) for row in rows),
            "hypothesised": sum(row.hypothesis is not None for row in rows),
        }


async def read(model: Model, issues: Sequence[Issue], say: Callable[[str], None] = lambda line: None) -> Reading:
    """All tiers, one after another, as far as the budget goes. Never raises for what the model does."""
    reading = Reading({issue.number: Read(issue.number) for issue in issues})
    try:
        for number, batch in enumerate(_batches(issues)):
            say(f"screened {number * _TOGETHER} of {len(issues)}")
            await _screen(model, batch, reading)
        relevant = [issue for issue in issues if reading.issues[issue.number].relevant]
        for number, issue in enumerate(relevant):
            say(f"classified {number} of {len(relevant)}")
            await _classify(model, issue, reading)
        different = [issue for issue in relevant if reading.issues[issue.number].compiled_differs]
        for number, issue in enumerate(different):
            say(f"hypothesised {number} of {len(different)}")
            await _hypothesise(model, issue, reading)
    except NoAnswer as none:
        reading.ended = str(none)
    return reading


def _batches(issues: Sequence[Issue]) -> Iterator[Sequence[Issue]]:
    for start in range(0, len(issues), _TOGETHER):
        yield issues[start : start + _TOGETHER]


async def _screen(model: Model, issues: Sequence[Issue], reading: Reading) -> None:
    shown = [{"number": item.number, "title": item.title, "text": item.body[:_GLANCE]} for item in issues]
    numbers = [str(item.number) for item in issues]
    verdict = record(number=choice(numbers), relevant={"type": "boolean"})
    form = record(verdicts=listing(verdict, len(issues), len(issues)))
    question = Question(
        "screen_issues", _SYSTEM, render("screen_issues", issues=shown), form, model.settings.answer_tokens, 0.0
    )
    data = await _asked(model, question, form, reading)
    rows = data["verdicts"] if data else []
    said = {int(row["number"]): bool(row["relevant"]) for row in rows}
    for item in issues:  # one that the model passed over goes on: missing a bug costs more than a question
        reading.issues[item.number] = replace(reading.issues[item.number], relevant=said.get(item.number, True))


async def _classify(model: Model, issue: Issue, reading: Reading) -> None:
    user = render(
        "classify_issue",
        issue=_text(issue),
        language=model.settings.language,
        tasks=TASK_WORDS,
        causes=CAUSE_WORDS,
    )
    question = Question("classify_issue", _SYSTEM, user, TAXONOMY, model.settings.answer_tokens, 0.0)
    data = await _asked(model, question, TAXONOMY, reading)
    if data is None:
        return
    told = {**data, "operators": tuple(data["operators"]), "summary": " ".join(data["summary"].split())[:300]}
    reading.issues[issue.number] = replace(reading.issues[issue.number], **told)


async def _hypothesise(model: Model, issue: Issue, reading: Reading) -> None:
    row = reading.issues[issue.number]
    sorted_as = f"{row.symptom}, in {row.component}, {row.task}; {row.summary}"
    user = render("issue_hypothesis", issue=_text(issue), sorted_as=sorted_as, language=model.settings.language)
    try:
        reading.issues[issue.number] = replace(row, hypothesis=await guess(model, "issue_hypothesis", user))
    except (NoJson, NoAnswer) as none:
        _in_vain(none, reading)


async def _asked(model: Model, question: Question, form: Schema, reading: Reading) -> Any:
    """The answer's value; None when there is none to this question. Raises ``NoAnswer`` when there will be no more."""
    try:
        return read_json((await model.ask(question)).text, form)
    except (NoJson, NoAnswer) as none:
        _in_vain(none, reading)
        return None


def _in_vain(none: NoJson | NoAnswer, reading: Reading) -> None:
    """Count a question without an answer; what holds for all questions is raised again."""
    if isinstance(none, NoAnswer) and none.wait != 0.0:
        raise none
    reading.useless += 1


def _text(issue: Issue) -> str:
    return f"{issue.title}\n\n{issue.body}"[:_LONGEST]


# -- how far to trust it ----------------------------------------------------------------------------------------------

#: Issue → (task, cause) that a person gave it.
Verified = Mapping[int, tuple[str, str]]


def sample(reading: Reading, verified: Verified) -> list[Read]:
    """Classified issues that a person ought to check, drawn evenly; those that one has checked count as drawn."""
    rows = sorted((row for row in reading.issues.values() if row.task), key=lambda row: row.number)
    wanted = min(len(rows), max(_SAMPLE, round(_SHARE * len(rows))))
    drawn = random.Random(_SEED).sample(rows, wanted)
    return [row for row in drawn if row.number not in verified]


def agreement(reading: Reading, issues: Iterable[Issue], verified: Verified) -> dict[str, float]:
    """Shares of equal answers: of the model with the rules, on all that it classified; and with a person, on those
    that one verified (``verified``: their number; 0.0 where there are none)."""
    rows = {number: (row.task, row.cause) for number, row in reading.issues.items() if row.task}
    rules = {issue.number: by_rules(issue) for issue in issues if issue.number in rows}
    people = {number: pair for number, pair in verified.items() if number in rows}
    found: dict[str, float] = {"classified": len(rows), "verified": len(people)}
    for name, other in (("rules", rules), ("person", people)):
        for place, part in enumerate(("task", "cause")):
            equal = sum(rows[number][place] == pair[place] for number, pair in other.items())
            found[f"{part}_with_{name}"] = equal / max(1, len(other))
    return found
