"""One question to the model and its answer: plain data, hashed, logged, replayed."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fuzzer.llm.schema import Schema

#: What a message costs beside its text, at most, in tokens (role and separators).
_OVERHEAD = 16


@dataclass(frozen=True)
class Question:
    """What is asked. ``seed`` is best effort of servers; here it makes two askings of one prompt two questions."""

    family: str
    system: str
    user: str
    schema: Schema | None = None
    answer_tokens: int = 1000
    temperature: float = 0.8
    seed: int = 0

    def key(self, model: str) -> str:
        """Hash over everything that bears on the answer but the endpoint."""
        data = [
            model,
            self.family,
            self.system,
            self.user,
            self.schema,
            self.answer_tokens,
            self.temperature,
            self.seed,
        ]
        text = json.dumps(data, sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:32]

    @property
    def most_tokens_in(self) -> int:
        """No tokeniser makes more tokens than bytes. The schema counts twice: as a parameter and in the text."""
        schema = len(json.dumps(self.schema)) if self.schema else 0
        return sum(len(text.encode("utf-8", "replace")) + _OVERHEAD for text in (self.system, self.user)) + 2 * schema

    def to_map(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Answer:
    """What came back. ``tokens_in`` and ``tokens_out`` are the server's count; ``source`` model | cache | log."""

    text: str
    finish: str
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    source: str = "model"

    @property
    def complete(self) -> bool:
        """Anything but ``stop`` is a cut-off or withheld answer."""
        return self.finish == "stop"

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out

    def to_map(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "source"}

    @classmethod
    def from_map(cls, data: Mapping[str, Any], source: str) -> Answer:
        """Raises ``KeyError``, ``TypeError`` or ``ValueError`` on another shape."""
        return cls(
            text=str(data["text"]),
            finish=str(data["finish"]),
            tokens_in=int(data["tokens_in"]),
            tokens_out=int(data["tokens_out"]),
            seconds=float(data["seconds"]),
            source=source,
        )
