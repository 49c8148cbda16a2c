"""A model's guess at the root cause of a finding: asked for, marked as a guess, kept beside the report."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from fuzzer.finding import Finding
from fuzzer.llm.model import Model
from fuzzer.llm.prompts import render, version
from fuzzer.llm.question import Question
from fuzzer.llm.schema import read_json, record
from fuzzer.report import code, escape, plain_title

#: Of findings and of reports alike.
GUESS = record(hypothesis={"type": "string"}, suspect={"type": "string"}, refuted_by={"type": "string"})

_SYSTEM = "You find root causes of bugs in torch.compile. You answer in the asked form only."
_LOG = 1500  # characters
_PROGRAM = 6000
_LONGEST = 1000  # characters of an answer's field that are kept


@dataclass(frozen=True)
class Hypothesis:
    """``suspect``: a pass, decomposition or lowering; ``refuted_by``: an experiment. ``by``: who says so."""

    text: str
    suspect: str
    refuted_by: str
    by: str  # model and prompt

    def to_map(self) -> dict[str, Any]:
        """The part of ``Finding.triage`` that this fills."""
        by = {"language_model": self.by, "verified": False, "suspect": self.suspect, "refuted_by": self.refuted_by}
        return {"hypothesis": self.text, "hypothesis_by": by}


async def explain(model: Model, finding: Finding) -> Hypothesis:
    """Raises ``NoAnswer``, and ``NoJson`` when the answer is of no use."""
    user = render(
        "hypothesis",
        program=finding.shown_text[:_PROGRAM],
        symptom=symptom(finding),
        stage=_stage(finding),
        log=_log(finding),
        language=model.settings.language,
    )
    return await guess(model, "hypothesis", user)


async def guess(model: Model, family: str, user: str) -> Hypothesis:
    """Ask a prompt whose answer is a ``GUESS``. Raises ``NoAnswer`` and ``NoJson``."""
    question = Question(family, _SYSTEM, user, GUESS, model.settings.answer_tokens, 0.2)
    data = read_json((await model.ask(question)).text, GUESS)
    text, suspect, refuted_by = (" ".join(data[name].split())[:_LONGEST] for name in GUESS["properties"])
    return Hypothesis(text, suspect, refuted_by, f"{model.settings.model}, prompt {family} v{version(family)}")


def symptom(finding: Finding) -> str:
    """What was seen, in a line."""
    return f"{plain_title(finding)} ({finding.reason})" if finding.reason else plain_title(finding)


def _stage(finding: Finding) -> str:
    parts = [
        finding.stage,
        f"first failing backend: {finding.triage['backend']}" if "backend" in finding.triage else "",
    ]
    if finding.triage.get("bisect"):
        parts.append(f"torch's bisector names: {finding.triage['bisect']}")
    return "; ".join(part for part in parts if part) or "not known"


def _log(finding: Finding) -> str:
    """Faults with their innermost frames, else the end of the log."""
    faults = [
        f"{stage}: {fault.get('type', '')}: {fault.get('message', '')[:500]}\n  at "
        + "\n  at ".join(fault.get("frames", [])[-4:])
        for stage, fault in finding.facts.get("faults", {}).items()
    ]
    return "\n".join(faults)[:_LOG] or str(finding.facts.get("log", ""))[-_LOG:]


def with_hypothesis(finding: Finding, hypothesis: Hypothesis) -> Finding:
    return replace(finding, triage={**finding.triage, **hypothesis.to_map()})


def page(finding: Finding, hypothesis: Hypothesis) -> str:
    """``hypothesis.md``: the guess under a notice of where it comes from. Model text cannot change the page."""
    return f"""# Hypothesis: {escape(plain_title(finding))}

> **Written by a language model** ({escape(hypothesis.by)}) from the program, what was seen of it and the log.
> **Nobody verified it.** It may be wrong in every point, and names of passes or functions may not exist. Check it
> before you repeat it, and say where it comes from if you do.

{escape(hypothesis.text)}

- Suspected: {code(hypothesis.suspect)}
- An experiment that would refute it: {escape(hypothesis.refuted_by)}
"""
