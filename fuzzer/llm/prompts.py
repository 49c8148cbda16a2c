"""Prompts: versioned templates filled with what retrieval found, held under a budget of tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import jinja2

from fuzzer.exits import UserError
from fuzzer.knowledge.families import KNOWLEDGE

FOLDER = KNOWLEDGE / "prompts"

#: Families that write programs, each in either form; the others are asked with a schema of their own.
WRITING = ("fresh", "mutate", "transfer", "plateau")
FORMS = ("steps", "free")

_HEADER = re.compile(r"\{# (\w+) v(\d+): ")
#: English and code have three to four characters a token; the estimate only steers how much context is given.
_CHARACTERS = 3.0


def tokens(text: str) -> int:
    """About how many tokens a text has."""
    return int(len(text.encode("utf-8", "replace")) / _CHARACTERS) + 1


@lru_cache(maxsize=4)
def _environment(folder: Path) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # prompts are plain text
    )


def version(family: str, folder: Path = FOLDER) -> int:
    """The number in the header comment. Raises ``UserError`` where file or header is missing."""
    path = folder / f"{family}.j2"
    try:
        first = path.read_text("utf-8").partition("\n")[0]
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror}); restore the file") from None
    found = _HEADER.match(first)
    if found is None or found[1] != family.lstrip("_"):
        raise UserError(f"{path}: must begin with {{# {family.lstrip('_')} v1: … #}}; mend the first line")
    return int(found[2])


def render(family: str, folder: Path = FOLDER, **context: Any) -> str:
    """A template, filled in. Raises ``UserError`` when it does not fit the context."""
    try:
        text = _environment(folder).get_template(f"{family}.j2").render(**context)
    except jinja2.TemplateError as error:
        raise UserError(f"{folder / family}.j2: {error}; mend the template") from None
    return re.sub(r"\n{3,}", "\n\n", text).strip()


@dataclass(frozen=True)
class Wish:
    """A feature in words."""

    words: str
    how: str = ""


@dataclass(frozen=True)
class Entry:
    """A piece of knowledge in words, with code where it has some."""

    words: str
    code: str = ""


@dataclass(frozen=True)
class Example:
    """An operator with a call that works."""

    key: str
    example: str


@dataclass(frozen=True)
class Context:
    """What a writing prompt may draw on, the most useful first in each list."""

    form: str = "free"
    mode: str = "forward"
    features: tuple[Wish, ...] = ()
    entries: tuple[Entry, ...] = ()
    operators: tuple[Example, ...] = ()
    seed: str = ""
    pattern: Entry | None = None
    neighbour: str = ""
    unreached: tuple[dict[str, str], ...] = ()
    language: str = "en"
    extra: dict[str, Any] = field(default_factory=dict)  # of families with needs of their own

    def variables(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "extra"}
        return {**own, **self.extra}


def writing_prompt(family: str, context: Context, budget: int, folder: Path = FOLDER) -> tuple[str, str]:
    """(system, user) of a prompt for a program, within ``budget`` tokens: what is least needed is left out first.

    The features asked, the seed and, for step lists, the operators that the schema names always stay.
    """
    system = render("_system", folder, **context.variables())
    left = budget - tokens(system)
    for smaller in _ever_smaller(context):
        user = render(family, folder, **smaller.variables())
        if tokens(user) <= left:
            break
    return system, user


def _ever_smaller(context: Context) -> Sequence[Context]:
    steps = [context]
    for count in range(len(context.entries) - 1, -1, -1):
        steps.append(replace(steps[-1], entries=context.entries[:count]))
    if any(item.get("source") for item in context.unreached):
        bare = tuple({**item, "source": ""} for item in context.unreached)
        steps.append(replace(steps[-1], unreached=bare))
    short = tuple(Example(item.key, item.example[:60]) for item in context.operators)
    steps.append(replace(steps[-1], operators=short))
    if context.form == "free":
        for count in (6, 3, 0):
            steps.append(replace(steps[-1], operators=short[:count]))
    return steps
