"""How far a server holds a model to a schema, and the form in which it is asked."""

from __future__ import annotations

import json
from enum import IntEnum
from typing import Any

from fuzzer.llm.question import Question
from fuzzer.llm.schema import NoJson, choice, read_json, record


class Level(IntEnum):
    """From the firmest to none; the first that a server really obeys is taken."""

    JSON_SCHEMA = 0  # response_format json_schema
    OBJECT_WITH_SCHEMA = 1  # json_object, which carries the schema (llama.cpp) and is told it in the prompt
    OBJECT = 2  # json_object, told the schema in the prompt
    PLAIN = 3  # told the schema in the prompt

    @property
    def next(self) -> Level:
        return Level(min(self + 1, Level.PLAIN))


def request_format(question: Question, level: Level) -> dict[str, Any] | None:
    """``response_format`` of a request; None where there is nothing to ask for."""
    if question.schema is None or level is Level.PLAIN:
        return None
    if level is Level.JSON_SCHEMA:
        body = {"name": "answer", "strict": True, "schema": dict(question.schema)}
        return {"type": "json_schema", "json_schema": body}
    if level is Level.OBJECT_WITH_SCHEMA:
        return {"type": "json_object", "schema": dict(question.schema)}
    return {"type": "json_object"}


def messages(question: Question, level: Level) -> list[dict[str, str]]:
    """The messages of a request; below ``JSON_SCHEMA`` the schema stands in the prompt."""
    user = question.user
    if question.schema is not None and level is not Level.JSON_SCHEMA:
        schema = json.dumps(question.schema, separators=(",", ":"))
        user += f"\n\nAnswer with one JSON object and nothing else. It must fit this JSON schema:\n{schema}"
    return [{"role": "system", "content": question.system}, {"role": "user", "content": user}]


#: Words that nobody would answer unless held to them.
_PROBE = record(colour=choice(("vermilion", "chartreuse")), number=choice(("forty-one", "seventy-three")))


def probe_question(level: Level) -> Question:
    """At the firm levels the prompt asks for prose, so that only a server that enforces the schema passes."""
    firm = level in (Level.JSON_SCHEMA, Level.OBJECT_WITH_SCHEMA)
    user = "Say hello." if firm else "Name a colour and a number."
    return Question(
        f"probe:{level.name.lower()}", "You answer briefly.", user, _PROBE, answer_tokens=80, temperature=0.0
    )


def obeyed(text: str) -> bool:
    """Did the server hold the model to the probe's schema?"""
    try:
        read_json(text, _PROBE)
    except NoJson:
        return False
    return True
