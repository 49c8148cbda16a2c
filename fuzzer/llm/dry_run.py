"""In place of a client: writes down exactly what would be sent, and sends nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fuzzer.llm.capability import Level, messages, request_format
from fuzzer.llm.client import Fault
from fuzzer.llm.jsonl import append_json
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.settings import Settings


class DryRun:
    """Every request becomes a line of ``would-send.jsonl``."""

    def __init__(self, settings: Settings, folder: Path) -> None:
        self.settings, self.path = settings, folder / "would-send.jsonl"

    async def close(self) -> None:
        """Nothing is open."""

    async def once(self, question: Question, level: Level) -> Answer:
        """Raises ``Fault``: there is no answer."""
        body: dict[str, Any] = {"model": self.settings.model, "messages": messages(question, level)}
        body |= {"max_tokens": question.answer_tokens, "temperature": question.temperature, "seed": question.seed}
        form = request_format(question, level)
        line = {"endpoint": self.settings.endpoint, "body": {**body, "response_format": form} if form else body}
        append_json(self.path, line)
        raise Fault("question", "dry run: nothing was sent")
