"""Whatever happens, no more is spent than was allowed, and nothing spent is forgotten."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuzzer.exits import UserError
from fuzzer.llm.ledger import Ledger, OverBudget
from fuzzer.llm.settings import Budget, Price, Redactor, Settings, key_of

calls = st.lists(
    st.tuples(st.integers(1, 400), st.integers(1, 400), st.floats(0, 1), st.sampled_from(["settle", "worst", "open"])),
    max_size=30,
)
budgets = st.one_of(
    st.builds(Budget, tokens=st.integers(0, 3000)),
    st.builds(Budget, money=st.floats(0.0001, 0.01)),
    st.builds(Budget, tokens_per_hour=st.integers(1, 3000), money=st.floats(0.0001, 0.01)),
)


@given(budgets, calls)
def test_never_overspends(budget: Budget, made: list[tuple[int, int, float, str]]) -> None:
    ledger = Ledger(budget, Price(1.0, 4.0), clock=lambda: 0.0)
    for tokens_in, tokens_out, share, how in made:
        try:
            item = ledger.reserve("fresh", tokens_in, tokens_out)
        except OverBudget:
            continue
        if how == "settle":
            ledger.settle(item, int(tokens_in * share), int(tokens_out * share))
        elif how == "worst":
            ledger.settle_worst(item)
        tokens, money = ledger.reserved
        total = ledger.total
        for limit, spent in (
            (budget.tokens, total.tokens + tokens),
            (budget.tokens_per_hour, total.tokens + tokens),
            (budget.money, total.money + money),
        ):
            assert limit is None or spent <= limit + 1e-9


def test_nothing_is_allowed_by_default() -> None:
    with pytest.raises(OverBudget) as caught:
        Ledger(Budget(), Price()).reserve("fresh", 1, 1)
    assert caught.value.wait is None


def test_an_hour_passes() -> None:
    now = [0.0]
    ledger = Ledger(Budget(tokens_per_hour=100), Price(), clock=lambda: now[0])
    ledger.settle(ledger.reserve("fresh", 40, 40), 40, 40)
    now[0] = 600.0
    with pytest.raises(OverBudget) as caught:
        ledger.reserve("fresh", 20, 20)
    assert caught.value.wait == 3000.0
    with pytest.raises(OverBudget) as never:
        ledger.reserve("fresh", 200, 1)
    assert never.value.wait is None
    now[0] += 3000.0
    assert ledger.reserve("fresh", 20, 20)


def test_the_file_is_continued_and_what_a_killed_process_reserved_is_spent(tmp_path: Path) -> None:
    path = tmp_path / "ledger.jsonl"
    first = Ledger(Budget(tokens=1000), Price(1.0, 2.0), path)
    first.settle(first.reserve("fresh", 100, 100), 60, 40)
    first.settle(first.reserve("repair", 10, 10), 0, 0, failed=True)
    first.reserve("mutate", 100, 50)  # and then it is killed
    with open(path, "ab") as stream:
        stream.write(b'{"at": 1, "rese')
    again = Ledger(Budget(tokens=1000), Price(1.0, 2.0), path)
    assert again.total.tokens == 250 and again.total.failures == 2
    assert again.families["fresh"].money == pytest.approx((60 + 2 * 40) / 1e6)
    assert Ledger(Budget(tokens=1000), Price(1.0, 2.0), path).total == again.total
    assert Ledger.read(Price(1.0, 2.0), path).total == again.total


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("200k", Budget(tokens=200_000)),
        ("2M,100k/h", Budget(tokens=2e6, tokens_per_hour=1e5)),
        ("1500 tokens", Budget(tokens=1500)),
        ("$5,$1/h", Budget(money=5, money_per_hour=1)),
        ("0.5usd", Budget(money=0.5)),
    ],
)
def test_budgets_are_read(text: str, budget: Budget) -> None:
    assert Budget.parse(text) == budget
    priced = Settings("http://h/v1", "m", budget, Price(1, 1))
    assert Settings.from_map(priced.to_map()) == priced


@pytest.mark.parametrize("text", ["", "lots", "-5", "5/day", "1k;2k"])
def test_no_budget(text: str) -> None:
    with pytest.raises(UserError, match="--llm-budget"):
        Budget.parse(text)


def test_settings_refuse_what_cannot_work() -> None:
    with pytest.raises(UserError, match="--llm-price"):
        Settings("http://h/v1", "m", Budget(money=5))
    for endpoint in ("h:80", "ftp://h", "http://user:hunter2@h/v1", "https://h/v1?key=hunter2"):
        with pytest.raises(UserError, match="--llm-endpoint") as caught:
            Settings(endpoint, "m")
        assert "hunter2" not in str(caught.value)


def test_where_the_key_comes_from() -> None:
    both = {"EDDY_LLM_KEY": "mine", "OPENAI_API_KEY": "theirs"}
    assert key_of("http://127.0.0.1/v1", both) == "mine"
    assert key_of("https://api.openai.com/v1", {"OPENAI_API_KEY": "theirs"}) == "theirs"
    assert key_of("https://elsewhere.example/v1", {"OPENAI_API_KEY": "theirs"}) == ""
    assert key_of("https://notopenai.com/v1", {"OPENAI_API_KEY": "theirs"}) == ""
    assert Redactor("abc")("xabcx sk-1234567890 Bearer tok.en") == "x[key]x [key] [key]"
