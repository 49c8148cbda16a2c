"""What a prompt is told: asked features in words, knowledge that fits them, operators with calls that work."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache

from fuzzer.engines.idioms import Knowledge, idioms_of
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operator, Operators
from fuzzer.knowledge.patterns import Entry as Known
from fuzzer.knowledge.patterns import Pattern
from fuzzer.knowledge.retrieval import Match, Retriever
from fuzzer.llm.prompts import Entry, Example, Wish

_CODE = 300  # characters of an example


def wishes(features: Sequence[str], space: FeatureSpace) -> tuple[Wish, ...]:
    """Features in words, with how generation brings them about; ids unknown to the space are left out."""
    known = [space.features[name] for name in features if name in space.features]
    return tuple(Wish(f"{feature.dimension}: {feature.description}", feature.how) for feature in known)


@lru_cache(maxsize=8)
def _retriever(knowledge: Knowledge) -> Retriever:
    return Retriever([entry for entry in knowledge.entries() if isinstance(entry, Pattern)])


def entries(
    features: Sequence[str],
    families: Sequence[str],
    space: FeatureSpace,
    rng: random.Random,
    most: int = 3,
    knowledge: Knowledge | None = None,
) -> tuple[Entry, ...]:
    """Bug patterns for the asked features, then idioms of features that no pattern speaks of."""
    knowledge = knowledge or Knowledge()
    found = [_worded(match.pattern) for match in _matches(features, families, most, knowledge)]
    for feature in features:
        idioms = [idiom for idiom in idioms_of(knowledge).of(feature) if idiom.code] if len(found) < most else []
        if idioms and feature in space.features:
            words = f"{space.features[feature].description} is often written like this"
            found.append(Entry(words, rng.choice(idioms).code[:_CODE]))
    return tuple(found[:most])


def _matches(features: Sequence[str], families: Sequence[str], most: int, knowledge: Knowledge) -> list[Match]:
    vector = [*features, *(f"family={family}" for family in families)]
    return list(_retriever(knowledge).retrieve(vector, whole=False, k=most))


def pattern(
    features: Sequence[str], families: Sequence[str], rng: random.Random, knowledge: Knowledge | None = None
) -> Entry | None:
    """One bug pattern to carry over: of those that fit, else any; None where patterns are switched off."""
    knowledge = knowledge or Knowledge()
    matches = _matches(features, families, 3, knowledge)
    if matches:
        return _worded(rng.choice(matches).pattern)
    patterns = _retriever(knowledge).patterns
    return _worded(rng.choice(patterns)) if patterns else None


def _worded(entry: Known) -> Entry:
    return Entry(
        ": ".join([entry.title, entry.words.removeprefix(entry.title).strip()]),
        entry.template.code.replace("\n", "; ")[:_CODE],
    )


def examples(operators: Operators, keys: Sequence[str]) -> tuple[Example, ...]:
    """Each operator with a recorded call. Those that cannot be written as a call are left out."""
    found = []
    for key in keys:
        operator = operators.by_key.get(key)
        text = example(operator) if operator is not None else ""
        if text:
            found.append(Example(key, text))
    return tuple(found)


def example(operator: Operator) -> str:
    """``torch.sum(x0, dim=-1) with x0 float32[3, 4]``; "" for an operator without a plain form."""
    for form in operator.forms:
        if form.kind not in ("function", "method", "operator"):
            continue
        for call in operator.calls_of(form)[:2]:
            bound = call.bind(grad=False)
            try:
                text = form.render(bound.args, bound.kwargs)
            except ValueError:
                continue
            shapes = [f"x{number} {tensor.dtype}{list(tensor.shape)}" for number, tensor in enumerate(call.tensors)]
            return text[:160] + (f" with {', '.join(shapes[:4])}" if shapes else "")
    return ""


def neighbour(operators: Operators, keys: Sequence[str], used: Collection[str], rng: random.Random) -> str:
    """An operator near those given that the campaign has not run yet, if there is one."""
    near = [
        other.key for key in keys if key in operators.by_key for other in operators.neighbours(operators.by_key[key])
    ]
    public = [key for key in dict.fromkeys(near) if not operators.by_key[key].private]
    unused = [key for key in public if key not in used]
    return rng.choice((unused or public)[:8]) if public else ""


def unreached(operators: Operators, executed: Collection[str], rng: random.Random, most: int = 3) -> list[str]:
    """Keys of operators with a lowering of their own of which nothing ran yet."""
    run = frozenset(executed)
    never = [
        operator.key
        for operator in operators
        if operator.lowering == "lowered" and operator.aten and not operator.private and run.isdisjoint(operator.aten)
    ]
    return rng.sample(never, min(most, len(never)))


def lowering_sources(text: str, names: Sequence[str]) -> Mapping[str, str]:
    """Operator name → the function in the text of a target's ``lowering.py`` that lowers it.

    ``names`` are packets, ``aten.cumsum``. What is registered in another way than by a decorator is not found.
    """
    found: dict[str, str] = {}
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return found
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            marks = " ".join(ast.unparse(mark) for mark in node.decorator_list) + " "
            for name in names:
                if any(f"{name}{end}" in marks for end in (",", ")", "]", " ", ".")):
                    found.setdefault(name, (ast.get_source_segment(text, node) or "")[:1500])
    return found
