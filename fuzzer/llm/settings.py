"""What a person chose about the language model, and the key, which comes from the environment and goes nowhere."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from fuzzer.exits import UserError

#: Where the key is looked for. OpenAI's own variable is for OpenAI's own hosts: it is sent to no other.
KEY_VARIABLE, OPENAI_VARIABLE = "EDDY_LLM_KEY", "OPENAI_API_KEY"
LANGUAGES = ("en", "zh")
#: In which form a model may write programs: step lists, which the template engine makes runnable, or free text.
FORMS = ("steps", "free", "both")

_MULTIPLES = {"": 1.0, "k": 1e3, "m": 1e6}
_AMOUNT = re.compile(r"(\$?)(\d+(?:\.\d+)?)([km]?)\s*(tokens?|usd|money)?(/h)?", re.IGNORECASE)
_SECRETS = re.compile(r"\b(sk-[A-Za-z0-9_*\-]{6,}|Bearer\s+\S+)")


@dataclass(frozen=True)
class Budget:
    """The most that may be spent. None: not limited in this unit. All None: nothing may be asked at all."""

    tokens: float | None = None  # both ways, over the whole campaign
    money: float | None = None
    tokens_per_hour: float | None = None
    money_per_hour: float | None = None

    @property
    def nothing(self) -> bool:
        return not any((self.tokens, self.money, self.tokens_per_hour, self.money_per_hour))

    @classmethod
    def parse(cls, text: str) -> Budget:
        """``200k``, ``2M,100k/h``, ``5usd``, ``$5,$1/h``: amounts of tokens or money, of the campaign or an hour.

        Raises:
            UserError: not such a list.
        """
        amounts: dict[str, float] = {}
        for part in text.split(","):
            found = _AMOUNT.fullmatch(part.strip())
            if found is None:
                raise UserError(
                    f"--llm-budget {text!r}: write amounts as 200k, 2M,100k/h (tokens) or 5usd, $1/h (money)"
                )
            sign, number, multiple, unit, hourly = found.groups()
            money = bool(sign) or (unit or "").lower() in ("usd", "money")
            name = ("money" if money else "tokens") + ("_per_hour" if hourly else "")
            amounts[name] = float(number) * _MULTIPLES[multiple.lower()]
        return cls(**amounts)


@dataclass(frozen=True)
class Price:
    """Money per million tokens. Zero for a model of one's own."""

    prompt: float = 0.0
    answer: float = 0.0

    def of(self, tokens_in: float, tokens_out: float) -> float:
        return (tokens_in * self.prompt + tokens_out * self.answer) / 1e6

    @classmethod
    def parse(cls, text: str) -> Price:
        """``0.15,0.6``: money per million tokens of prompts and of answers. Raises ``UserError``."""
        parts = text.split(",")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) != 2 or not all(0 <= number < float("inf") for number in numbers):
            raise UserError(f"--llm-price {text!r}: write two numbers, money per million tokens in and out: 0.15,0.6")
        return cls(*numbers)


@dataclass(frozen=True)
class Settings:
    """One endpoint and how it may be used. Holds no secret: it is written into ``campaign.toml``."""

    endpoint: str = ""
    model: str = ""
    budget: Budget = field(default_factory=Budget)
    price: Price = field(default_factory=Price)
    language: str = "en"  # of worded output; programs and prompts stay English
    form: str = "both"  # of FORMS
    concurrency: int = 2
    requests_per_minute: float = 60.0
    timeout: float = 300.0  # seconds of one request: nothing waits for it, and a niced local model is slow
    context_tokens: int = 2400  # of a prompt
    answer_tokens: int = 1200

    def __post_init__(self) -> None:
        if self.language not in LANGUAGES:
            raise UserError(f"language {self.language!r}: use one of {', '.join(LANGUAGES)}")
        if self.form not in FORMS:
            raise UserError(f"form {self.form!r}: use one of {', '.join(FORMS)}")
        if self.endpoint:
            check_endpoint(self.endpoint)
        if (self.budget.money or self.budget.money_per_hour) and self.price == Price():
            raise UserError("a budget in money needs the price: --llm-price IN,OUT (money per million tokens)")

    def to_map(self) -> dict[str, Any]:
        """For ``campaign.toml``."""
        budget = {name: value for name, value in vars(self.budget).items() if value is not None}
        plain = {name: value for name, value in vars(self).items() if name not in ("budget", "price")}
        return {**plain, "budget": budget, "price": dict(vars(self.price))}

    @classmethod
    def from_map(cls, data: Mapping[str, Any]) -> Settings:
        """Read ``to_map``'s; unknown keys are of a newer Eddy. Raises ``UserError`` on a wrong type."""
        plain = {name: data[name] for name in cls.__dataclass_fields__ if name in data}
        try:
            plain["budget"] = Budget(**dict(plain.get("budget", {})))
            plain["price"] = Price(**dict(plain.get("price", {})))
            return cls(**plain)
        except TypeError as error:
            raise UserError(f"campaign.toml, table llm: {error}; mend that line") from None


def check_endpoint(endpoint: str) -> None:
    """Raises ``UserError`` unless it is a plain http(s) address; one with a password in it would be written down."""
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UserError(f"--llm-endpoint {endpoint!r}: not an address; write http://127.0.0.1:8080/v1 or https://…/v1")
    if parts.username or parts.password or parts.query:
        raise UserError(f"--llm-endpoint: no secrets in the address; put the key into the variable {KEY_VARIABLE}")


def key_of(endpoint: str, environment: Mapping[str, str] | None = None) -> str:
    """The key for an endpoint; "" where none is set (local servers take any)."""
    environment = os.environ if environment is None else environment
    key = environment.get(KEY_VARIABLE, "")
    host = urlsplit(endpoint).hostname or ""
    if not key and (host == "openai.com" or host.endswith(".openai.com")):
        key = environment.get(OPENAI_VARIABLE, "")
    return key.strip()


@dataclass(frozen=True)
class Redactor:
    """Takes the key, and what looks like one, out of a text before it is written or shown."""

    key: str = field(default="", repr=False)

    def __call__(self, text: str) -> str:
        if self.key:
            text = text.replace(self.key, "[key]")
        return _SECRETS.sub("[key]", text)
