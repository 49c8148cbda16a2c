"""What the model cost: tokens and money by prompt family; nothing is asked that could exceed the budget.

The worst case is reserved before a call and settled from what the server says was used. A call that was cut off keeps
its reservation, for it may have been charged. The file is append-only; what a killed process left reserved stays spent.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from fuzzer.exits import UserError
from fuzzer.llm.jsonl import append_json, read_json_lines
from fuzzer.llm.settings import Budget, Price

_HOUR = 3600.0


class OverBudget(Exception):
    """The worst case of a call does not fit. ``wait``: seconds until it may; None when it never will."""

    def __init__(self, why: str, wait: float | None) -> None:
        super().__init__(why)
        self.wait = wait


@dataclass
class Spent:
    """Sums of one prompt family. ``requests`` reached the network; ``cached`` did not need to."""

    requests: int = 0
    failures: int = 0
    cached: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    money: float = 0.0

    @property
    def tokens(self) -> int:
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True)
class Reservation:
    number: int
    family: str
    tokens_in: int
    tokens_out: int
    at: float = field(compare=False, default=0.0)


class Ledger:
    """Invariant: settled plus reserved never exceeds the budget, unless a server uses more than it was allowed."""

    def __init__(
        self, budget: Budget, price: Price, path: Path | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        """``path``: the file to continue and append to; None keeps everything in memory."""
        self.budget, self.price, self.path, self.clock = budget, price, path, clock
        self.families: dict[str, Spent] = {}
        self._open: dict[int, Reservation] = {}
        self._hour: deque[tuple[float, float]] = deque()  # (when, tokens and money) of what was settled
        self._hour_money: deque[tuple[float, float]] = deque()
        self._next = 1
        if path is not None and path.exists():
            self._recover(path)

    @classmethod
    def read(cls, price: Price, path: Path) -> Ledger:
        """What a campaign spent, without touching its file. Nothing can be reserved in it."""
        ledger = cls(Budget(), price)
        if path.exists():
            ledger._recover(path)
        return ledger

    @property
    def total(self) -> Spent:
        """Over all families; what is still reserved is not in it."""
        total = Spent()
        for spent in self.families.values():
            for name in Spent.__dataclass_fields__:
                setattr(total, name, getattr(total, name) + getattr(spent, name))
        return total

    @property
    def reserved(self) -> tuple[float, float]:
        """Tokens and money of calls in flight, at their worst."""
        tokens = sum(item.tokens_in + item.tokens_out for item in self._open.values())
        return tokens, sum(self.price.of(item.tokens_in, item.tokens_out) for item in self._open.values())

    def reserve(self, family: str, tokens_in: int, tokens_out: int) -> Reservation:
        """Set the worst case of a call aside.

        Raises:
            OverBudget: it does not fit; nothing is set aside.
        """
        worst = float(tokens_in + tokens_out)
        money = self.price.of(tokens_in, tokens_out)
        self._check(worst, money)
        item = Reservation(self._next, family, tokens_in, tokens_out, self.clock())
        self._next += 1
        self._open[item.number] = item
        self._write({"reserve": item.number, "family": family, "in": tokens_in, "out": tokens_out})
        return item

    def _check(self, worst: float, money: float) -> None:
        budget, total = self.budget, self.total
        if budget.nothing:
            raise OverBudget("the budget is 0", None)
        tokens_open, money_open = self.reserved
        if budget.tokens is not None and total.tokens + tokens_open + worst > budget.tokens:
            raise self._over("tokens", total.tokens, budget.tokens, worst, tokens_open)
        if budget.money is not None and total.money + money_open + money > budget.money + 1e-12:
            raise self._over("money", total.money, budget.money, money, money_open)
        for limit, settled, already, more, unit in (
            (budget.tokens_per_hour, self._hour, tokens_open, worst, "tokens"),
            (budget.money_per_hour, self._hour_money, money_open, money, "money"),
        ):
            if limit is None:
                continue
            now = self.clock()
            while settled and settled[0][0] <= now - _HOUR:
                settled.popleft()
            if sum(amount for _, amount in settled) + already + more > limit + 1e-12:
                never = more > limit
                wait = None if never else max(1.0, settled[0][0] + _HOUR - now) if settled else 1.0
                raise OverBudget(f"the budget of {limit:g} {unit} an hour is spent", wait)

    @staticmethod
    def _over(unit: str, spent: float, limit: float, worst: float, opened: float) -> OverBudget:
        why = f"{spent:.6g} of {limit:g} {unit} spent; the next call could need {worst:.6g}"
        return OverBudget(why, 1.0 if opened else None)  # what is in flight may give some back

    def settle(self, item: Reservation, tokens_in: int, tokens_out: int, failed: bool = False) -> None:
        """What the call really used; zero for one that never reached the model."""
        self._open.pop(item.number)
        self._spend(item.family, tokens_in, tokens_out, failed, self.clock())
        self._write({"settle": item.number, "in": tokens_in, "out": tokens_out, "failed": failed})

    def settle_worst(self, item: Reservation) -> None:
        """The call was cut off: count it as if it had used all that it might."""
        self.settle(item, item.tokens_in, item.tokens_out, failed=True)

    def count_cached(self, family: str) -> None:
        """An answer that came from the cache or from a log."""
        self.families.setdefault(family, Spent()).cached += 1

    def _spend(self, family: str, tokens_in: int, tokens_out: int, failed: bool, at: float) -> None:
        spent = self.families.setdefault(family, Spent())
        money = self.price.of(tokens_in, tokens_out)
        spent.requests += 1
        spent.failures += failed
        spent.tokens_in += tokens_in
        spent.tokens_out += tokens_out
        spent.money += money
        self._hour.append((at, float(tokens_in + tokens_out)))
        self._hour_money.append((at, money))

    # -- the file -------------------------------------------------------------------------------------------------

    def _write(self, line: Mapping[str, Any]) -> None:
        if self.path is not None:
            append_json(self.path, {"at": round(self.clock(), 3), **line})

    def _recover(self, path: Path) -> None:
        opened: dict[int, Reservation] = {}
        for line in read_json_lines(path):
            try:
                at = float(line["at"])
                if "reserve" in line:
                    number = int(line["reserve"])
                    opened[number] = Reservation(number, str(line["family"]), int(line["in"]), int(line["out"]), at)
                    self._next = max(self._next, number + 1)
                elif "settle" in line:
                    item = opened.pop(int(line["settle"]))
                    self._spend(item.family, int(line["in"]), int(line["out"]), bool(line["failed"]), at)
            except (KeyError, TypeError, ValueError):
                raise UserError(f"{path}: a line is damaged ({str(line)[:80]}); remove that line") from None
        for item in opened.values():
            self._open[item.number] = item
            self.settle_worst(item)
