"""Every misbehaviour of an endpoint ends in the right state."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_base import model
from loopback import KEY, Loopback, loopback

from fuzzer.llm.capability import Level
from fuzzer.llm.client import Fault, retry_after
from fuzzer.llm.model import Model, NoAnswer
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.schema import choice, read_json, record
from fuzzer.llm.settings import Budget

pytest.importorskip("openai")
PLAIN = Question("fresh", "You write.", "Write a program.", None, 300)
STRUCTURED = Question("fresh", "You write.", "Choose.", record(colour=choice(("red", "blue"))), 300)


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as made:
        yield made


def ask(made: Model, question: Question) -> Answer:
    async def asked() -> Answer:
        try:
            return await made.ask(question)
        finally:
            await made.close()

    return asyncio.run(asyncio.wait_for(asked(), 30.0))


def refused(made: Model, question: Question) -> NoAnswer:
    with pytest.raises(NoAnswer) as caught:
        ask(made, question)
    return caught.value


@pytest.mark.parametrize(
    "trouble", ["busy", "broken", "truncated", "torn_json", "garbage", "other_json", "null", "reset"]
)
def test_passing_trouble_is_outlasted(trouble: str, server: Loopback, tmp_path: Path) -> None:
    server.script = [trouble, trouble]
    made = model(server, tmp_path)
    assert "def fn" in ask(made, PLAIN).text
    assert len(server.requests) == 3
    assert made.ledger.total.failures == 2
    assert not made.outage.open and not made.dead


@pytest.mark.parametrize("trouble", ["hang", "drip"])
def test_an_endless_answer_is_cut_off_and_counted_in_full(trouble: str, server: Loopback, tmp_path: Path) -> None:
    server.script = [trouble]
    made = model(server, tmp_path, timeout=1.0)
    answer = ask(made, PLAIN)
    total = made.ledger.total
    assert total.failures >= 1 and total.requests == total.failures + 1  # a busy machine may be late once more
    assert total.tokens == total.failures * (PLAIN.most_tokens_in + PLAIN.answer_tokens) + answer.tokens


@pytest.mark.parametrize("trouble", ["quota", "unauthorised", "no_model", "redirect"])
def test_what_no_second_try_mends_is_asked_once(trouble: str, server: Loopback, tmp_path: Path) -> None:
    server.default = trouble
    made = model(server, tmp_path)
    none = refused(made, PLAIN)
    assert none.wait is None and made.dead
    assert len(server.requests) == 1
    assert made.ledger.total.tokens == 0
    assert KEY not in str(none) and KEY not in (tmp_path / "exchanges.jsonl").read_text()


def test_a_dead_model_sends_nothing_more(server: Loopback, tmp_path: Path) -> None:
    server.default = "unauthorised"
    made = model(server, tmp_path)

    async def twice() -> None:
        for _ in range(2):
            with pytest.raises(NoAnswer):
                await made.ask(PLAIN)
        await made.close()

    asyncio.run(twice())
    assert len(server.requests) == 1


def test_retry_after_beyond_patience_is_left_to_the_caller(server: Loopback, tmp_path: Path) -> None:
    server.script = ["busy_long"]
    made = model(server, tmp_path)

    async def asked() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(made.ask(PLAIN), 0.5)
        await made.close()

    asyncio.run(asked())
    assert len(server.requests) == 1
    assert 200.0 < made.outage.wait <= 240.0


def test_nobody_listens(server: Loopback, tmp_path: Path) -> None:
    made = model(server, tmp_path)
    server.close()
    none = refused(made, PLAIN)
    assert none.wait is not None and made.outage.failures == 4
    assert made.ledger.total.tokens == 0  # nothing can have been charged


@pytest.mark.parametrize(
    ("manner", "level"),
    [
        ("ok", Level.JSON_SCHEMA),
        ("objects_only", Level.OBJECT_WITH_SCHEMA),
        ("no_format", Level.PLAIN),
        ("ignores_schema", Level.PLAIN),
    ],
)
def test_the_probe_finds_what_a_server_obeys(manner: str, level: Level, server: Loopback, tmp_path: Path) -> None:
    server.default = manner
    made = model(server, tmp_path)

    async def probed() -> Level:
        found = await made.capability()
        assert found is await made.capability()  # asked once
        await made.close()
        return found

    found = asyncio.run(probed())
    # a server that reads the schema in the prompt is as good with an object as with an object that carries it
    assert found is level or (manner == "objects_only" and found is Level.OBJECT)
    before = len(server.requests)
    if manner != "ignores_schema":
        again = model(server, tmp_path)
        again.level = found
        assert read_json(ask(again, STRUCTURED).text, STRUCTURED.schema)
        assert len(server.requests) == before + 1


def test_a_refused_parameter_is_left_out(server: Loopback, tmp_path: Path) -> None:
    server.default = "picky"
    ask(model(server, tmp_path), PLAIN)
    assert "max_completion_tokens" in server.requests[-1] and "temperature" not in server.requests[-1]


def test_finish_reasons(server: Loopback, tmp_path: Path) -> None:
    server.default = "length_once"
    assert ask(model(server, tmp_path / "a"), PLAIN).complete
    assert [body["max_tokens"] for body in server.requests] == [300, 600]
    server.default = "length"
    assert refused(model(server, tmp_path / "b"), PLAIN).wait == 0.0
    server.default = "filtered"
    assert "content_filter" in str(refused(model(server, tmp_path / "c"), PLAIN))
    assert not list(tmp_path.glob("[bc]/cache/*"))  # no answer that is not whole is kept


def test_a_question_too_long_is_dropped_and_the_next_is_asked(server: Loopback, tmp_path: Path) -> None:
    server.script = ["too_long"]
    made = model(server, tmp_path)

    async def asked() -> None:
        with pytest.raises(NoAnswer):
            await made.ask(PLAIN)
        assert await made.ask(STRUCTURED)
        await made.close()

    asyncio.run(asked())
    assert not made.dead and not made.outage.open


def test_cached_answers_cost_nothing(server: Loopback, tmp_path: Path) -> None:
    first = ask(model(server, tmp_path), PLAIN)
    made = model(server, tmp_path, budget=Budget(tokens=1))
    again = ask(made, PLAIN)
    assert again.text == first.text and again.source == "cache"
    assert len(server.requests) == 1


def test_without_counts_the_worst_case_is_charged(server: Loopback, tmp_path: Path) -> None:
    server.default = "no_usage"
    made = model(server, tmp_path)
    ask(made, PLAIN)
    assert made.ledger.total.tokens == PLAIN.most_tokens_in + PLAIN.answer_tokens


def test_one_trial_at_a_time_while_the_endpoint_is_down(server: Loopback, tmp_path: Path) -> None:
    server.default = "slow"
    made = model(server, tmp_path, concurrency=4)
    made.outage.failed()
    order: list[int] = []

    async def one(number: int) -> None:
        await made.ask(Question("fresh", "", f"{number}", None, 100))
        order.append(len(server.requests))

    async def all_of_them() -> None:
        await asyncio.gather(*(one(number) for number in range(4)))
        await made.close()

    asyncio.run(asyncio.wait_for(all_of_them(), 30.0))
    assert order[0] == 1  # nobody else was let through before the first came back


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "Thu, 01 Jan 1970 00:02:00 GMT"}, 20.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "1e9"}, 3600.0),
        ({"retry-after": "-5"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers, now=100.0) == seconds


def test_the_key_is_sent_and_never_shown(server: Loopback, tmp_path: Path) -> None:
    server.default = "echoes_key"
    made = model(server, tmp_path)
    ask(made, PLAIN)
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert KEY not in (tmp_path / "exchanges.jsonl").read_text()
    fault: Any = Fault("fatal", made.exchanges.redact(f"bad key {KEY}"))
    assert KEY not in str(fault)
