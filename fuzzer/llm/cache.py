"""Answers by question: what was asked once is not paid for twice."""

from __future__ import annotations

import json
from pathlib import Path

from fuzzer.llm.question import Answer
from fuzzer.store import atomic


class AnswerCache:
    """One file an answer, named by the question's key. Only complete answers are kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, key: str) -> Answer | None:
        """The answer; None where there is none, or the file is damaged (then it is asked again)."""
        try:
            return Answer.from_map(json.loads(self._path(key).read_text("utf-8")), "cache")
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def put(self, key: str, answer: Answer) -> None:
        """Raises ``OSError``."""
        if answer.complete:
            self.folder.mkdir(parents=True, exist_ok=True)
            atomic.write_text(self._path(key), json.dumps(answer.to_map(), ensure_ascii=False))

    def _path(self, key: str) -> Path:
        return self.folder / f"{key}.json"
