"""Triggers: boolean expressions over what a program has, such as ``layout=transposed & family=index_reduction``.

An atom reads ``dimension=value``: a feature's id, ``family=NAME`` (a family of operators) or ``op=NAME`` (an operator,
by its name without module and overload). ``!`` binds tighter than ``&``, ``&`` tighter than ``|``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from fuzzer.exits import UserError

_TOKEN = re.compile(r"\s*(?:(?P<atom>[a-z_0-9]+=[\w>]+)|(?P<sign>[&|!()]))")


@dataclass(frozen=True)
class Atom:
    name: str


@dataclass(frozen=True)
class Not:
    term: Node


@dataclass(frozen=True)
class All:
    terms: tuple[Node, ...]


@dataclass(frozen=True)
class Any:
    terms: tuple[Node, ...]


Node = Atom | Not | All | Any


@dataclass(frozen=True)
class Trigger:
    """A parsed expression. ``atoms``: all of them; ``positive``: those outside any negation; ``necessary``: those that
    every vector with the trigger has."""

    text: str
    node: Node
    atoms: frozenset[str]
    positive: frozenset[str]
    necessary: frozenset[str]

    def holds(self, vector: Collection[str]) -> bool:
        """On a vector that is the whole truth: what it lacks, the program lacks."""
        return _holds(self.node, vector)

    def possible(self, vector: Collection[str], excluded: Callable[[str], bool]) -> bool:
        """On a vector of things asked, the rest being free: may a program with it still have the trigger?

        ``excluded``: does the vector rule out this atom?
        """
        return _possible(self.node, vector, excluded, True)

    def strength(self, vector: Collection[str], weights: Mapping[str, float]) -> float:
        """Summed weights of the positive atoms that hold, of the strongest alternative."""
        return _strength(self.node, vector, weights)


def parse(text: str, where: str) -> Trigger:
    """Raises ``UserError`` naming the place and the remedy."""
    tokens = _tokens(text, where)
    node = _either(tokens, where)
    if tokens:
        raise UserError(f"{where}: {tokens[0]!r} is left over; join atoms with & or |")
    return Trigger(text, node, _atoms(node), _positive(node, True), _necessary(node))


def _tokens(text: str, where: str) -> list[str]:
    found, place = [], 0
    text = text.rstrip()
    while place < len(text):
        token = _TOKEN.match(text, place)
        if token is None:
            raise UserError(
                f"{where}: cannot read {text[place:].strip()[:30]!r}; write dimension=value, &, |, ! or ( )"
            )
        found.append(token["atom"] or token["sign"])
        place = token.end()
    return found


def _either(tokens: list[str], where: str) -> Node:
    terms = [_both(tokens, where)]
    while tokens and tokens[0] == "|":
        tokens.pop(0)
        terms.append(_both(tokens, where))
    return terms[0] if len(terms) == 1 else Any(tuple(terms))


def _both(tokens: list[str], where: str) -> Node:
    terms = [_term(tokens, where)]
    while tokens and tokens[0] == "&":
        tokens.pop(0)
        terms.append(_term(tokens, where))
    return terms[0] if len(terms) == 1 else All(tuple(terms))


def _term(tokens: list[str], where: str) -> Node:
    if not tokens:
        raise UserError(f"{where}: an atom is missing at the end; write dimension=value")
    token = tokens.pop(0)
    if token == "!":
        return Not(_term(tokens, where))
    if token == "(":
        node = _either(tokens, where)
        if not tokens or tokens.pop(0) != ")":
            raise UserError(f"{where}: a parenthesis is not closed; add )")
        return node
    if token in "&|)":
        raise UserError(f"{where}: {token!r} where an atom ought to stand; write dimension=value")
    return Atom(token)


def _holds(node: Node, vector: Collection[str]) -> bool:
    if isinstance(node, Atom):
        return node.name in vector
    if isinstance(node, Not):
        return not _holds(node.term, vector)
    if isinstance(node, All):
        return all(_holds(term, vector) for term in node.terms)
    return any(_holds(term, vector) for term in node.terms)


def _possible(node: Node, vector: Collection[str], excluded: Callable[[str], bool], wanted: bool) -> bool:
    """May the node become ``wanted``?"""
    if isinstance(node, Atom):
        return (node.name in vector or not excluded(node.name)) if wanted else node.name not in vector
    if isinstance(node, Not):
        return _possible(node.term, vector, excluded, not wanted)
    every = isinstance(node, All) == wanted
    found = (_possible(term, vector, excluded, wanted) for term in node.terms)
    return all(found) if every else any(found)


def _strength(node: Node, vector: Collection[str], weights: Mapping[str, float]) -> float:
    if isinstance(node, Atom):
        return weights.get(node.name, 1.0) if node.name in vector else 0.0
    if isinstance(node, Not):
        return 0.0
    strengths = [_strength(term, vector, weights) for term in node.terms]
    return sum(strengths) if isinstance(node, All) else max(strengths)


def _atoms(node: Node) -> frozenset[str]:
    if isinstance(node, Atom):
        return frozenset({node.name})
    terms = (node.term,) if isinstance(node, Not) else node.terms
    return frozenset().union(*(_atoms(term) for term in terms))


def _positive(node: Node, sign: bool) -> frozenset[str]:
    if isinstance(node, Atom):
        return frozenset({node.name}) if sign else frozenset()
    if isinstance(node, Not):
        return _positive(node.term, not sign)
    return frozenset().union(*(_positive(term, sign) for term in node.terms))


def _necessary(node: Node) -> frozenset[str]:
    if isinstance(node, Atom):
        return frozenset({node.name})
    if isinstance(node, All):
        return frozenset().union(*(_necessary(term) for term in node.terms))
    if isinstance(node, Any):
        return frozenset.intersection(*(_necessary(term) for term in node.terms))
    return frozenset()
