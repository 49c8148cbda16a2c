"""One request to an OpenAI-compatible endpoint, and what every way of failing means."""

from __future__ import annotations

import asyncio
import email.utils
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fuzzer.exits import UserError
from fuzzer.llm.capability import Level, messages, request_format
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.settings import Redactor, Settings

#: Statuses that no second try mends: bad request, no key, forbidden, no such model, unprocessable.
_FATAL = frozenset({400, 401, 402, 403, 404, 405, 422})
_TRANSIENT = frozenset({408, 409, 425, 429})
#: Codes of a request that is refused for what it says, not for how the endpoint is used.
_THIS_QUESTION = ("context_length_exceeded", "content_filter", "content_policy_violation", "string_above_max_length")
_QUOTA = ("insufficient_quota", "billing_hard_limit_reached", "quota_exceeded")


@dataclass
class Fault(Exception):
    """A request without a usable answer.

    ``kind``: ``fatal`` (asking again is no use), ``question`` (this question is), ``schema`` (the schema is refused),
    ``busy`` (429, 5xx), ``timeout``, ``connection``, ``garbage``. ``charged``: the server may have counted it.
    """

    kind: str
    why: str
    retry_after: float | None = None
    charged: bool = False

    def __str__(self) -> str:
        return f"{self.kind}: {self.why}"


class Client:
    """Asks once. Remembers which parameters an endpoint does not take."""

    def __init__(self, settings: Settings, key: str) -> None:
        """Raises ``UserError`` when the package ``openai`` is not installed."""
        try:
            import openai
        except ImportError:
            raise UserError("the package openai is not installed; run: pip install 'eddyfuzz[llm]'") from None
        self._openai: Any = openai
        self.settings = settings
        self.redact = Redactor(key)
        self._tokens_name = "max_tokens"
        self._left_out: set[str] = set()
        # No redirects: nothing may leave for any place but the one that was named.
        http = openai.DefaultAsyncHttpxClient(follow_redirects=False)
        self._sdk = openai.AsyncOpenAI(
            api_key=key or "none",
            base_url=settings.endpoint,
            timeout=settings.timeout,
            max_retries=0,
            http_client=http,
        )

    async def close(self) -> None:
        await self._sdk.close()

    async def once(self, question: Question, level: Level) -> Answer:
        """One request, repeated only to leave out a parameter that the endpoint refuses.

        Raises:
            Fault: no answer. A truncated one is an answer (``Answer.finish``).
        """
        while True:
            try:
                return await self._request(question, level)
            except Fault as fault:
                if fault.kind != "fatal" or not self._adapt(fault.why):
                    raise

    def _adapt(self, why: str) -> bool:
        """Change what is sent after a refusal that names a parameter; False when there is nothing to change."""
        if "max_completion_tokens" in why and self._tokens_name == "max_tokens":
            self._tokens_name = "max_completion_tokens"
            return True
        for name in ("temperature", "seed"):
            if name in why and name not in self._left_out:
                self._left_out.add(name)
                return True
        return False

    def _parameters(self, question: Question, level: Level) -> dict[str, Any]:
        parameters: dict[str, Any] = {
            "model": self.settings.model,
            "messages": messages(question, level),
            self._tokens_name: question.answer_tokens,
            "temperature": question.temperature,
            "seed": question.seed % (1 << 31),
        }
        form = request_format(question, level)
        if form is not None:
            parameters["response_format"] = form
        return {name: value for name, value in parameters.items() if name not in self._left_out}

    async def _request(self, question: Question, level: Level) -> Answer:
        openai, started = self._openai, time.monotonic()
        try:
            call = self._sdk.chat.completions.create(**self._parameters(question, level))
            # The SDK's limit is per read: a server that drips would hold us for ever.
            response = await asyncio.wait_for(call, self.settings.timeout)
        except (asyncio.TimeoutError, openai.APITimeoutError):
            raise Fault("timeout", f"no answer within {self.settings.timeout:g} s", charged=True) from None
        except openai.APIStatusError as error:
            raise self._status_fault(error, question) from None
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else ""
            reached = not cause.startswith("Connect")
            raise Fault("connection", self.redact(f"{error} ({cause})")[:300], charged=reached) from None
        except (openai.OpenAIError, ValueError) as error:
            raise Fault("garbage", self.redact(f"{type(error).__name__}: {error}")[:300], charged=True) from None
        return self._answer(response, question, time.monotonic() - started)

    def _answer(self, response: Any, question: Question, seconds: float) -> Answer:
        try:
            choice = response.choices[0]
            text, finish = choice.message.content, choice.finish_reason
        except (AttributeError, IndexError, TypeError, KeyError):
            text = finish = None
        if finish == "stop" and not isinstance(text, str):
            finish = None
        if not isinstance(finish, str):
            raise Fault("garbage", self.redact(f"not a chat completion: {str(response)[:160]}"), charged=True)
        usage = getattr(response, "usage", None)
        counted = [getattr(usage, name, None) for name in ("prompt_tokens", "completion_tokens")]
        known = [number if isinstance(number, int) and number >= 0 else None for number in counted]
        # A server that does not count gets the worst case.
        tokens_in = question.most_tokens_in if known[0] is None else known[0]
        tokens_out = question.answer_tokens if known[1] is None else known[1]
        return Answer(text if isinstance(text, str) else "", finish, tokens_in, tokens_out, round(seconds, 3))

    def _status_fault(self, error: Any, question: Question) -> Fault:
        status = int(error.status_code)
        body = error.body if isinstance(error.body, Mapping) else {}
        codes = " ".join(str(body.get(name, "")) for name in ("code", "type"))
        why = self.redact(f"{status} {codes.strip()} {error.message}"[:400])
        if any(word in codes for word in _QUOTA):
            return Fault("fatal", why)
        if status == 413 or any(word in codes for word in _THIS_QUESTION):
            return Fault("question", why)
        if status in (400, 422) and question.schema is not None and _about_schema(why):
            return Fault("schema", why)
        if 300 <= status < 400:
            return Fault("fatal", f"{why}: the endpoint redirects; give the address that it redirects to")
        if status >= 500 or status in _TRANSIENT:
            return Fault("busy", why, retry_after=retry_after(error.response.headers))
        return Fault("fatal" if status in _FATAL else "question", why)


def _about_schema(why: str) -> bool:
    return any(word in why.lower() for word in ("response_format", "schema", "grammar", "json"))


def retry_after(headers: Mapping[str, str], now: float | None = None) -> float | None:
    """Seconds that a server asks to wait: ``Retry-After`` as a number or a date; at most an hour is believed."""
    text = headers.get("retry-after-ms") or headers.get("retry-after") or ""
    try:
        seconds = float(text) / (1000.0 if headers.get("retry-after-ms") else 1.0)
    except ValueError:
        try:
            when = email.utils.parsedate_to_datetime(text).timestamp()
        except (ValueError, TypeError, IndexError):
            return None
        seconds = when - (time.time() if now is None else now)
    return min(max(seconds, 0.0), 3600.0) if seconds == seconds else None
