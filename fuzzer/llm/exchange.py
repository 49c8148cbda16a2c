"""Every exchange with the model on disk, and a campaign's exchanges served again without a network."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.llm.jsonl import append_json, read_json_lines
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.settings import Redactor

FILE = "exchanges.jsonl"


class Exchanges:
    """Appends to ``exchanges.jsonl``: the question whole, and the answer or what went wrong. Never the key."""

    def __init__(self, folder: Path | None, redact: Redactor) -> None:
        """``folder`` None: nothing is written."""
        self.path = folder / FILE if folder else None
        self.redact = redact

    def answered(self, model: str, question: Question, answer: Answer) -> None:
        self._append(model, question, {"answer": answer.to_map(), "source": answer.source})

    def failed(self, model: str, question: Question, kind: str, why: str) -> None:
        self._append(model, question, {"fault": {"kind": kind, "why": why[:500]}})

    def _append(self, model: str, question: Question, outcome: Mapping[str, Any]) -> None:
        if self.path is None:
            return
        record = {"at": round(time.time(), 3), "model": model, "key": question.key(model)}
        record |= {"question": question.to_map(), **outcome}
        append_json(self.path, _redacted(record, self.redact))


def _redacted(value: Any, redact: Redactor) -> Any:
    if isinstance(value, str):
        return redact(value)
    if isinstance(value, Mapping):
        return {key: _redacted(item, redact) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_redacted(item, redact) for item in value]
    return value


class Replay:
    """The answers of a logged campaign, by question; asked again, a question gets its next answer, then the last."""

    def __init__(self, folder: Path) -> None:
        """``folder``: a campaign's directory or its ``llm`` folder.

        Raises:
            UserError: there is no log.
        """
        path = next((place for place in (folder / FILE, folder / "llm" / FILE) if place.is_file()), None)
        if path is None:
            raise UserError(
                f"--llm-replay {folder}: holds no {FILE}; name a campaign that used a model, or its llm folder"
            )
        self.model = ""
        self._answers: dict[str, deque[Answer]] = {}
        for record in read_json_lines(path):
            if "answer" not in record:
                continue
            try:
                answer = Answer.from_map(record["answer"], "log")
                self._answers.setdefault(str(record["key"]), deque()).append(answer)
                self.model = str(record["model"])
            except (KeyError, TypeError, ValueError):
                raise UserError(f"{path}: an exchange is damaged ({str(record)[:60]}…); remove that line") from None

    def __len__(self) -> int:
        return sum(map(len, self._answers.values()))

    def __contains__(self, key: object) -> bool:
        return bool(self._answers.get(str(key)))

    def get(self, key: str) -> Answer | None:
        """The next answer to a question; None for one that was never answered."""
        known = self._answers.get(key)
        if not known:
            return None
        return known.popleft() if len(known) > 1 else known[0]
