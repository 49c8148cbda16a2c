"""The linter of the knowledge base: what only the whole can show, and what only a run can.

Loading already checks each entry by itself (syntax of triggers and templates). Here: do features, families and
operators exist, is an entry a reworded copy of another, does its example run eagerly (or is it refused, where the entry
says so), and does what ran have the entry's own trigger?
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Protocol

from fuzzer.engines.checks import SETUP, whole_run
from fuzzer.engines.draft import Candidate, Draft
from fuzzer.engines.idiom import write
from fuzzer.engines.tensors import Fresh
from fuzzer.features.detect_text import vocabulary
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.families import Families
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Entry, Pattern
from fuzzer.knowledge.retrieval import program_vector
from fuzzer.observation import Observation
from fuzzer.program import Program

#: Share of words in common from which two entries of equal trigger or code count as one.
ALIKE = 0.75
_BATCH = 40  # examples a request of the probe: well within its seconds, also on a busy machine
#: What programs call and the catalogue of operators leaves out: transforms, modes, constructors, attributes.
_UNCATALOGUED = vocabulary(
    """jacfwd jacrev jvp vmap grad hessian while_loop map associative_scan enable_grad set_grad_enabled backward tolist
    requires_grad_ tensor data randperm fold affine_grid bartlett_window hann_window hamming_window blackman_window
    _weight_norm"""
)
_WORD = re.compile(r"[A-Za-z_]{2,}|\d+")


class Executor(Protocol):
    """What the linter needs of a worker."""

    async def execute(
        self, program: Program, variant: str = "", options: dict[str, Any] | None = None, coverage: bool = True
    ) -> Observation: ...

    async def probe(
        self, groups: list[list[str]], names: list[list[str]] | None = None, reset: bool = False
    ) -> dict[str, Any]: ...


@dataclass(frozen=True)
class Fault:
    """What is wrong with an entry, and how to mend it."""

    entry: str
    text: str

    def __str__(self) -> str:
        return f"{self.entry}: {self.text}"


def check(entries: Sequence[Entry], space: FeatureSpace, families: Families, operators: Collection[str]) -> list[Fault]:
    """All that can be seen without running anything. ``operators``: names without modules; empty: not checked."""
    faults = []
    for entry in entries:
        atoms: Iterable[str] = entry.trigger.atoms if isinstance(entry, Pattern) else entry.brings
        for atom in sorted(atoms):
            dimension, _, name = atom.partition("=")
            if dimension == "family":
                if name not in families.by_id:
                    faults.append(Fault(entry.id, f"no family {name!r}; see knowledge/families.toml"))
            elif dimension == "op":
                if operators and name.strip("_") not in operators and name not in _UNCATALOGUED:
                    faults.append(Fault(entry.id, f"no operator {name!r}; `eddy knowledge search` finds its name"))
            elif atom not in space.features:
                faults.append(Fault(entry.id, f"no feature {atom!r}; see knowledge/features.toml"))
    faults += [
        Fault(right.id, f"says the same as {left.id}; merge them, or give it a trigger or action of its own")
        for left, right in near_duplicates(entries)
    ]
    return faults


def operator_names(operators: Operators) -> frozenset[str]:
    """Names by which triggers may call operators: those of the catalogue and of what they dispatch to, bare."""
    names = {operator.name.rpartition(".")[2] for operator in operators}
    names |= {packet.split(".")[1] for operator in operators for packet in operator.aten if "." in packet}
    return frozenset(name.strip("_") for name in names)


def near_duplicates(entries: Sequence[Entry]) -> list[tuple[Entry, Entry]]:
    """Pairs that differ neither in when they apply nor in what they do."""
    said = {entry.id: _bag(entry.words) for entry in entries}
    code = {entry.id: _bag(entry.template.code) for entry in entries}
    found = []
    for left, right in combinations(entries, 2):
        if left.kind != right.kind:
            continue
        same_words = _alike(said[left.id], said[right.id])
        same_code = _alike(code[left.id], code[right.id]) == 1.0 and left.template == right.template
        same_trigger = isinstance(left, Pattern) and isinstance(right, Pattern) and left.trigger == right.trigger
        if same_words >= ALIKE or (same_code and same_words >= ALIKE / 2) or (same_trigger and same_words >= ALIKE / 2):
            found.append((left, right))
    return found


def _bag(text: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(text))


def _alike(left: frozenset[str], right: frozenset[str]) -> float:
    return len(left & right) / max(1, len(left | right))


# -- examples -------------------------------------------------------------------------------------------------------


def example(entry: Entry, seed: int = 0) -> Program:
    """A program that consists of the entry's template on a fresh tensor."""
    idiom, rng, draft = entry.template, random.Random(seed), Draft()
    dtype, shape = idiom.subject(rng)
    mode = str(idiom.meta.get("mode", "forward"))
    grad = mode in ("backward", "train")
    names = draft.fresh_names(2)[: 1 + idiom.needs_twin]
    inputs = [(name, Fresh(shape, dtype, grad=grad).text(rng)) for name in names]
    piece = write(idiom, names[0], dtype, shape, rng, lambda: draft.fresh_names(1)[0], names[-1])
    binds = (*(name for name, _ in (*inputs, *piece.inputs)), *piece.binds)
    lines = ["\n".join(piece.lines)] if idiom.code else [f"{names[0]}.clone()"]
    target = piece.results[0] if piece.results else ""
    draft.accept(
        Candidate(
            [*inputs, *piece.inputs], lines, target, (), binds, "", written=piece.written, results=piece.results,
            helper=piece.helper, kept=True,
        ),
        {name: {"kind": "tensor"} for name in (*binds, piece.written) if name},
    )  # fmt: skip
    draft.merge(dict(idiom.meta))
    draft.as_dict = idiom.returns == "dict"
    return Program.parse(draft.text({"mode": mode, **draft.meta}, draft.results()), entry.id)


async def run_examples(entries: Sequence[Entry], worker: Executor, operators: Operators) -> list[Fault]:
    """Every example once, eagerly, in one worker; what that says against it.

    All run in one probe child, some dozens a request. Those whose trigger their text alone does not show run once more
    by themselves, where operators, shapes and layouts are observed.
    """
    faults: list[Fault] = []
    for start in range(0, len(entries), _BATCH):
        batch = [(entry, example(entry)) for entry in entries[start : start + _BATCH]]
        runs = [[whole_run(program.text)] for _, program in batch]
        answer = await worker.probe([[SETUP], *runs], reset=True)
        for number, (entry, program) in enumerate(batch, 1):
            if "died" not in answer:
                result = answer["results"][number]
                told = _told(entry, result["errors"][0] if result["chosen"] < 0 else "")
                if told or _shown(entry, program, operators):
                    faults += told
                    continue
            seen = await worker.execute(program, options={"only_eager": True}, coverage=False)
            faults += judge_example(entry, program, seen, operators.family_of_aten, operators.families)
    return faults


def _shown(entry: Entry, program: Program, operators: Operators) -> bool:
    """Does the text show all that a run would have to? What a run adds can only contradict a negation."""
    vector = program_vector(program, None, operators.family_of_aten, operators.families)
    if isinstance(entry, Pattern):
        whole = entry.trigger.positive == entry.trigger.atoms
        return (entry.refused and _has_trigger(entry, vector)) or (whole and entry.trigger.holds(vector))
    return vector.issuperset(entry.brings)


def _told(entry: Entry, error: str) -> list[Fault]:
    """What it says that eager raised, or (empty) did not."""
    if error and not entry.refused:
        return [Fault(entry.id, f"its example does not run ({error}); mend the code, or write refused = true")]
    if entry.refused and not error:
        return [Fault(entry.id, "eager takes its example although refused = true; mend one of them")]
    return []


def judge_example(
    entry: Entry,
    program: Program,
    seen: Observation,
    family_of: Callable[[str], str],
    families: Families,
) -> list[Fault]:
    """What an eager run of the entry's example says against it."""
    fault = next((stage.fault for stage in seen.stages if stage.fault), None)
    error = f"{fault.type}: {fault.message.splitlines()[0] if fault.message else ''}" if fault else ""
    if not error and seen.end.how != "done":
        error = f"{seen.end.how} {seen.end.why}".strip()
    told = _told(entry, error)
    if told:
        return told
    vector = program_vector(program, seen, family_of, families)
    if isinstance(entry, Pattern) and not _has_trigger(entry, vector):
        missing = sorted(entry.trigger.positive - vector)
        return [Fault(entry.id, f"its example lacks its own trigger ({', '.join(missing)}); mend one of them")]
    lacking = sorted(set(entry.brings) - vector)
    return [Fault(entry.id, f"its example lacks {', '.join(lacking)}; take it from its features")] if lacking else []


def _has_trigger(pattern: Pattern, vector: frozenset[str]) -> bool:
    """Of what eager refused nothing was observed: then the operators must be there, and the rest may be."""
    if not pattern.refused:
        return pattern.trigger.holds(vector)
    return pattern.trigger.possible(vector, lambda atom: atom.startswith("op=") and atom not in vector)


__all__ = ["ALIKE", "Fault", "check", "example", "judge_example", "near_duplicates", "operator_names", "run_examples"]
