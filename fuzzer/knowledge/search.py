"""Search by words over everything that is known: operators, features, bug patterns, subgraphs (SQLite's FTS5, BM25)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fuzzer.exits import UserError
from fuzzer.features.space import FeatureSpace
from fuzzer.knowledge.operators import Operators
from fuzzer.knowledge.patterns import Entry, Pattern

#: Weights of a document's columns in BM25: a word of the name counts more than one of the text.
_WEIGHTS = (4.0, 2.0, 1.0)


@dataclass(frozen=True)
class Document:
    """What can be found. ``kind``: operator, feature, pattern or subgraph; ``id`` is what ``show`` takes."""

    kind: str
    id: str
    title: str
    text: str


@dataclass(frozen=True)
class Hit:
    """``score``: BM25, the greater the better; comparable within one search only."""

    document: Document
    score: float


def documents(operators: Operators, space: FeatureSpace, entries: Sequence[Entry]) -> list[Document]:
    """Everything as documents; an operator's text is its names, family, schemas and the family's description."""
    found = []
    for operator in operators:
        family = operators.families.by_id.get(operator.family)
        words = [form.text for form in operator.forms] + list(operator.schema) + [operator.family, operator.lowering]
        title = family.description if family is not None else operator.family
        found.append(Document("operator", operator.key, title, " ".join(words)))
    for feature in space.features.values():
        found.append(Document("feature", feature.id, feature.description, feature.how))
    for entry in entries:
        said = entry.action if isinstance(entry, Pattern) else entry.about
        trigger = entry.trigger.text if isinstance(entry, Pattern) else " ".join(entry.brings)
        text = f"{said} {entry.family} {trigger} {entry.template.code}"
        found.append(Document(entry.kind, entry.id, entry.title, text))
    return found


def search(words: str, among: Iterable[Document], limit: int = 10) -> list[Hit]:
    """The documents that have any of the words, the best first.

    Raises:
        UserError: no word to search for, or this Python's SQLite cannot search text.
    """
    query = fts_query(words)
    known = list(among)
    with connect(":memory:") as base:
        base.execute("CREATE VIRTUAL TABLE found USING fts5(id, title, text, tokenize = 'porter unicode61')")
        rows = ((number, _split(document.id), document.title, document.text) for number, document in enumerate(known))
        base.executemany("INSERT INTO found (rowid, id, title, text) VALUES (?, ?, ?, ?)", rows)
        ranked = base.execute(
            "SELECT rowid, -bm25(found, ?, ?, ?) FROM found WHERE found MATCH ? ORDER BY 2 DESC, 1 LIMIT ?",
            (*_WEIGHTS, query, limit),
        ).fetchall()
    return [Hit(known[number], score) for number, score in ranked]


def fts_query(words: str, most: int = 40) -> str:
    """Any text as a query of FTS5: its words, any of them. Raises ``UserError`` when there is none."""
    found = list(dict.fromkeys(word.lower() for word in re.findall(r"[^\W_]{2,}", words)))
    if not found:
        raise UserError("no word to search for; write at least one of two letters")
    return " OR ".join(f'"{word}"' for word in found[:most])


def connect(path: str) -> sqlite3.Connection:
    """A connection that can search text. Raises ``UserError`` where SQLite was built without FTS5."""
    base = sqlite3.connect(path)
    try:
        base.execute("CREATE VIRTUAL TABLE temp.probe USING fts5(x)")
        base.execute("DROP TABLE temp.probe")
    except sqlite3.OperationalError as error:
        base.close()
        raise UserError(f"SQLite cannot search text here ({error}); use a Python whose sqlite3 has FTS5") from None
    return base


def _split(name: str) -> str:
    """``nn.functional.max_pool2d`` with its parts, so that they are words of their own."""
    return f"{name} {re.sub(r'[^A-Za-z0-9]+', ' ', name)}"
