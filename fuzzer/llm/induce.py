"""A draft of a bug pattern, induced from a confirmed finding: words by the model, the rest mechanically.

The model says when it happens (out of features that the program really has) and what goes wrong. Code, what ``x`` must
be, versions and the kind of fault come from the finding itself. A person reads the draft before it joins the knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from fuzzer.finding import Finding
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.retrieval import program_vector
from fuzzer.llm.explain import symptom
from fuzzer.llm.model import Model
from fuzzer.llm.prompts import render, version
from fuzzer.llm.question import Question
from fuzzer.llm.schema import NoJson, choice, listing, read_json, record
from fuzzer.program import Program
from fuzzer.store.directory import format_toml
from fuzzer.verdict import Kind

_SYSTEM = "You state patterns behind bugs in torch.compile. You answer in the asked form only."
_MOST_ATOMS = 4  # of a trigger: more would fit nothing but the program it comes from
_OFFERED = 24
_ORACLES: Mapping[Kind, str] = {
    Kind.WRONG_VALUE: "value",
    Kind.WRONG_GRADIENT: "gradient",
    Kind.WRONG_MUTATION: "mutation",
    Kind.METADATA: "metadata",
    Kind.MISSING_CHECK: "missing_check",
    Kind.COMPILE_ERROR: "compile_error",
    Kind.EXTRA_CHECK: "compile_error",
}


def atoms(finding: Finding, operators: Operators) -> list[str]:
    """What a trigger may be made of: features found to be essential, else all that the text shows; and operators."""
    program = Program.parse(finding.shown_text)
    shown = program_vector(program, None, operators.family_of_aten, operators.families)
    known = {atom for operator in operators for atom in (f"op={operator.name.rpartition('.')[2]}",)}
    called = sorted(atom for atom in shown if atom.startswith("family=") or atom in known)
    essential = [name for name in finding.triage.get("essential_features", ()) if "=" in name]
    features = essential or sorted(atom for atom in shown if not atom.startswith(("op=", "family=")))
    return list(dict.fromkeys([*features, *called]))[:_OFFERED]


async def induce(
    model: Model, finding: Finding, operators: Operators, taken: Collection[str], template: Mapping[str, Any]
) -> dict[str, Any]:
    """The table of a pattern.

    Args:
        taken: ids that are in use.
        template: its code and what belongs to it, see ``fuzzer.llm.generalise``.

    Raises:
        NoAnswer: the model cannot be asked.
        NoJson: its answer is of no use.
    """
    offered = atoms(finding, operators)
    if not offered:
        raise NoJson("the program shows no feature that a trigger could be made of")
    words = {"type": "string"}
    form = record(title=words, trigger=listing(choice(offered), _MOST_ATOMS, 1), action=words)
    user = render(
        "induce_pattern",
        program=finding.shown_text,
        symptom=symptom(finding),
        essential=", ".join(offered),
        language=model.settings.language,
    )
    question = Question("induce_pattern", _SYSTEM, user, form, model.settings.answer_tokens, 0.2)
    data = read_json((await model.ask(question)).text, form)
    title, action = (" ".join(data[name].split())[:300] for name in ("title", "action"))
    if not title or not action:
        raise NoJson("title or action is empty")
    torch = str(finding.target.get("torch", "")).partition("+")[0]
    table: dict[str, Any] = {
        "id": _id(title, finding, taken),
        "title": title,
        "trigger": " & ".join(dict.fromkeys(data["trigger"])),
        "action": action,
        "oracle": _ORACLES.get(finding.kind, "crash"),
    }
    if torch:
        table["versions"] = [torch]
    if finding.kind is Kind.MISSING_CHECK:
        table["refused"] = True
    return {**table, **template}


def _id(title: str, finding: Finding, taken: Collection[str]) -> str:
    """From the title; with the finding's signature where that says nothing or is taken."""
    words = re.findall(r"[a-z0-9]+", title.lower())[:6]
    name = "-".join(words)
    return name if name and name not in taken else "-".join([*words, finding.sig8])


def draft(table: Mapping[str, Any], finding: Finding, model: str, faults: Sequence[str]) -> str:
    """The file: a header that says what it is, what the linter said, and the entry."""
    head = [
        "DRAFT, UNVERIFIED: title, trigger and action were written by a language model",
        f"({model}, prompt induce_pattern v{version('induce_pattern')}) from finding {finding.sig8}.",
        "Read and mend it, then move the entry to knowledge/patterns/FAMILY.toml and run: eddy knowledge lint --run",
        *(f"linter: {fault}" for fault in faults),
    ]
    lines = [f"# {_plain(line)}" for line in head]
    lines += ["", "[[pattern]]", *(f"{key} = {_inline(value)}" for key, value in table.items())]
    return "\n".join(lines) + "\n"


def _plain(line: str) -> str:
    """One line without control characters: TOML allows none in comments."""
    return "".join(letter if letter.isprintable() else " " for letter in line)


def _inline(value: Any) -> str:
    """A value on one line; a list of texts on several, as code is read."""
    if isinstance(value, list) and len(value) > 1 and all(isinstance(item, str) for item in value):
        return "[\n" + "".join(f"  {_inline(item)},\n" for item in value) + "]"
    return format_toml({"v": [value]}).strip().removeprefix("v = [").removesuffix("]")
