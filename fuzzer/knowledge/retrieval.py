"""Which bug patterns fit a program, or what is asked of one: a boolean filter on triggers, then a score.

Pure: posteriors come in as a mapping, and the same arguments give the same answer.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from fuzzer.features.detect import detect
from fuzzer.knowledge.families import OTHER, Families
from fuzzer.knowledge.patterns import Pattern
from fuzzer.observation import Observation
from fuzzer.program import Program

#: Share of the match in the score; the rest is the posterior mean.
ALPHA = 0.8
#: What an atom that holds says of a pattern, by its dimension: the rarer among programs by chance, the more. Shares of
#: programs of the template engine that have such a feature, as a negative logarithm, roughly.
_TELLS: Mapping[str, float] = {
    "op": 2.5, "mechanism": 2.5, "family": 1.5, "boundary": 1.5, "control": 2.0, "python": 1.5, "config": 1.2,
    "values": 0.8, "mode": 0.7, "topology": 0.6, "mutation": 0.7, "context": 1.2, "layout": 1.2, "cast": 1.2,
    "dtype_mix": 1.3, "dtype": 0.8, "shape": 0.8, "broadcast": 0.7, "adjacency": 1.2, "op_family": 1.0,
}  # fmt: skip
#: Features that say more than others of their dimension.
_TELLING: Mapping[str, float] = {
    "shape=scalar": 1.3, "shape=empty": 2.2, "dtype=complex64": 2.0, "layout=contiguous": 0.2,
    # operators that stand in most programs, whatever they are about
    **{f"op={name}": 1.0 for name in ("add", "sub", "mul", "div", "view", "to", "sum", "copy_", "expand")},
}  # fmt: skip
_HALF = 3.0  # summed weights at which a match counts half
_SAME_FAMILY, _SAME_WORDS = 0.35, 0.2  # taken off for what was chosen before
#: Operators as Python writes them.
_SIGNS: Mapping[type, str] = {
    ast.MatMult: "matmul", ast.Pow: "pow", ast.FloorDiv: "floor_divide", ast.Mod: "remainder", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitXor: "bitwise_xor", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
}  # fmt: skip
#: Attributes that are operators.
_ATTRIBUTES = frozenset({"T", "mT", "H", "mH", "real", "imag", "data"})


@dataclass(frozen=True)
class Match:
    """A pattern that fits. ``match`` and ``score`` lie in [0, 1]; the score is the one before any penalty."""

    pattern: Pattern
    match: float
    score: float


class Retriever:
    """Over a fixed set of patterns."""

    def __init__(self, patterns: Sequence[Pattern], compatible: Callable[[str, str], bool] | None = None) -> None:
        """``compatible``: can one program have both features (``FeatureSpace.compatible``)? By default all can."""
        self.patterns = tuple(patterns)
        self._compatible = compatible
        atoms = {atom for pattern in patterns for atom in pattern.trigger.atoms}
        self._weights = {atom: _TELLING.get(atom, _TELLS.get(atom.partition("=")[0], 1.0)) for atom in atoms}
        self._features = sorted(atom for atom in atoms if not atom.startswith(("family=", "op=")))
        self._contrary: dict[str, frozenset[str]] = {}  # feature → atoms that no program with it can have
        self._words = {pattern.id: frozenset(re.findall(r"[a-z]{3,}", pattern.title.lower())) for pattern in patterns}

    def retrieve(
        self,
        vector: Collection[str],
        posteriors: Mapping[str, tuple[float, float]] | None = None,
        *,
        whole: bool = True,
        k: int = 3,
        alpha: float = ALPHA,
    ) -> list[Match]:
        """The best ``k`` patterns, the best first, unlike one another.

        Args:
            vector: features, ``family=…`` and ``op=…``.
            posteriors: pattern → (a, b) of its Beta distribution; unknown ones start at (weight, 1).
            whole: the vector is all that the program has. False: it is what is asked, and the rest is free; then any
                pattern fits that is not contradicted and shares an atom with it.
        """
        posteriors = posteriors or {}
        asked = frozenset(vector)
        found = [self._match(pattern, asked, posteriors, alpha) for pattern in self._fitting(asked, whole)]
        return self._diverse(found, k)

    def _fitting(self, vector: frozenset[str], whole: bool) -> Iterator[Pattern]:
        if whole:
            yield from (pattern for pattern in self.patterns if pattern.trigger.holds(vector))
            return
        contrary: frozenset[str] = frozenset().union(*(self._against(feature) for feature in vector))
        for pattern in self.patterns:
            trigger = pattern.trigger
            if not trigger.positive.isdisjoint(vector) and trigger.possible(vector, contrary.__contains__):
                yield pattern

    def _against(self, feature: str) -> frozenset[str]:
        """Atoms that a program with the feature cannot have."""
        if self._compatible is None or feature.startswith(("family=", "op=")):
            return frozenset()
        if feature not in self._contrary:
            compatible = self._compatible
            self._contrary[feature] = frozenset(atom for atom in self._features if not compatible(atom, feature))
        return self._contrary[feature]

    def _match(
        self, pattern: Pattern, vector: frozenset[str], posteriors: Mapping[str, tuple[float, float]], alpha: float
    ) -> Match:
        strength = pattern.trigger.strength(vector, self._weights)
        match = strength / (strength + _HALF)
        a, b = posteriors.get(pattern.id, (pattern.weight, 1.0))
        return Match(pattern, match, alpha * match + (1 - alpha) * a / (a + b))

    def _diverse(self, found: list[Match], k: int) -> list[Match]:
        chosen: list[Match] = []
        left = sorted(found, key=lambda match: (-match.score, match.pattern.id))
        while left and len(chosen) < k:
            best = max(left, key=lambda match: match.score - self._likeness(match, chosen))
            left.remove(best)
            chosen.append(best)
        return chosen

    def _likeness(self, match: Match, chosen: Sequence[Match]) -> float:
        penalty = 0.0
        for other in chosen:
            same = _SAME_FAMILY if other.pattern.family == match.pattern.family else 0.0
            left, right = self._words[match.pattern.id], self._words[other.pattern.id]
            penalty = max(penalty, same + _SAME_WORDS * len(left & right) / max(1, len(left | right)))
        return penalty


def program_vector(
    program: Program, observation: Observation | None, family_of: Callable[[str], str], families: Families
) -> frozenset[str]:
    """Features that a program realised, with ``family=…`` and ``op=…`` of what it calls and of what ran.

    Args:
        family_of: name of an operator as dispatched → family.
        families: for the names that stand in the text.
    """
    found = set(detect(program, observation, family_of))
    calls = set(called(program))
    written = {name.rpartition(".")[2] for name in calls}
    ran = [str(op["op"]) for op in observation.ops] if observation is not None else []
    names = written | {name.split(".")[1] for name in ran if "." in name}
    found.update(f"op={name}" for name in names | {name.strip("_") for name in names})
    for name in calls:
        known = [families.of(name), families.of(name.rpartition(".")[2])]
        found.add(f"family={next((family for family in known if family != OTHER), OTHER)}")
    found.update(f"family={family_of(name)}" for name in ran)
    return frozenset(found - {f"family={OTHER}", "family=", "op="})


def called(program: Program) -> Iterator[str]:
    """Names of what the text calls outside its builders, of ``nn`` modules everywhere: as written behind ``torch.``,
    or the bare name of a method. Not what a function is given: modules among the inputs have names of one letter."""
    for node in ast.parse(program.text).body:
        building = isinstance(node, ast.FunctionDef) and node.name.startswith("build_inputs")
        given = {argument.arg for argument in node.args.args} if isinstance(node, ast.FunctionDef) else set()
        for inner in ast.walk(node):
            if isinstance(inner, ast.Call):
                name = ast.unparse(inner.func) if isinstance(inner.func, (ast.Attribute, ast.Name)) else ""
                last = name.rpartition(".")[2]
                if last and name not in given and (not building or last[:1].isupper()):
                    yield name.removeprefix("torch.") if name.startswith("torch.") else last
            elif isinstance(inner, (ast.BinOp, ast.AugAssign)) and not building and type(inner.op) in _SIGNS:
                yield _SIGNS[type(inner.op)]
            elif isinstance(inner, ast.Attribute) and inner.attr in _ATTRIBUTES and not building:
                yield inner.attr
