"""Campaigns with a model on loopback: what it writes is run, what it does wrong stops nothing."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from llm_base import campaign, operators, records, run
from loopback import KEY, Loopback, loopback

from fuzzer.llm.exchange import Replay
from fuzzer.llm.host import CampaignHost
from fuzzer.llm.settings import Budget
from fuzzer.loop_state import LoopState

pytest.importorskip("openai")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as made:
        yield made


def engines(path: Path) -> Counter[str]:
    return Counter(row["outcome"]["plan"]["engine"] for row in records(path) if row["t"] == "run")


def tries(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "llm" / "tries.jsonl").read_text().splitlines()]


def test_both_forms_are_written_and_run(server: Loopback, tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", server, engine="llm", max_execs=40, no_clock=True)
    assert run(made) == "max-execs"
    ran = [row["outcome"]["plan"] for row in records(tmp_path / "c") if row["t"] == "run"]
    arms = Counter(plan["operator"].partition(":")[2] for plan in ran if plan["engine"] == "llm")
    assert arms["steps"] > 5 and arms["free"] > 5
    assert {"fresh", "mutate", "transfer"} <= {plan["operator"].partition(":")[0] for plan in ran}
    verdicts = Counter((line["stage"], line["verdict"]) for line in tries(tmp_path / "c"))
    assert verdicts["run", "pass"] > 12 and verdicts["probe", "built"] > 5
    status = made.llm.statistics()  # type: ignore[union-attr]
    assert status["llm_requests"] == len(server.requests) and status["llm_tokens"] > 1000
    texts = [row["text"] for row in records(tmp_path / "c") if row["t"] == "written"]
    assert any('"engine": "llm"' in text for text in texts)
    assert not any('"fake"' in text or '"atol": 100' in text for text in texts)  # META is what the model may choose


def test_no_worker_waits_for_a_model_that_never_answers(server: Loopback, tmp_path: Path) -> None:
    server.default = "hang"
    made = campaign(tmp_path / "c", server, engine="llm", max_execs=40, workers=2, llm_options={"timeout": 60.0})
    assert run(made) == "max-execs"
    assert engines(tmp_path / "c")["llm"] == 0


@pytest.mark.parametrize(
    "trouble", ["quota", "garbage", "reset", "unauthorised", "broken", "ignores_schema", "filtered"]
)
def test_trouble_stops_no_campaign(trouble: str, server: Loopback, tmp_path: Path) -> None:
    server.default = trouble
    made = campaign(tmp_path / "c", server, max_execs=30, workers=2)
    assert run(made) == "max-execs"
    assert made.state.counters.runs >= 30
    assert sum(row["t"] == "order" for row in records(tmp_path / "c")) < 60  # and floods no journal


def test_an_outage_and_back(server: Loopback, tmp_path: Path) -> None:
    server.script = ["broken", "reset", "garbage", "busy", "torn_json", "broken"]
    made = campaign(tmp_path / "c", server, engine="llm", max_execs=80, workers=2)
    assert run(made) == "max-execs"
    assert not server.script and engines(tmp_path / "c")["llm"] > 0
    told = " ".join(line["text"] for line in _events(tmp_path / "c"))
    assert "the campaign goes on without it" in told and "the endpoint answers again" in told


def test_the_budget_ends_requests_and_not_the_campaign(server: Loopback, tmp_path: Path) -> None:
    budget = Budget(tokens=60_000)
    made = campaign(tmp_path / "c", server, engine="llm", max_execs=50, no_clock=True, llm_options={"budget": budget})
    assert run(made) == "max-execs"
    counted = made.llm.model.ledger.total  # type: ignore[union-attr]
    assert 5_000 < counted.tokens <= 60_000
    assert engines(tmp_path / "c")["template"] + engines(tmp_path / "c")["mutate"] > 0


def plans(path: Path) -> list[Any]:
    return [
        (row["program"], row["outcome"]["plan"], row["outcome"]["kind"]) for row in records(path) if row["t"] == "run"
    ]


def test_the_log_gives_the_same_campaign_without_a_network(server: Loopback, tmp_path: Path) -> None:
    options: dict[str, Any] = {"engine": "llm", "max_execs": 30, "no_clock": True, "workers": 1}
    run(campaign(tmp_path / "a", server, **options))
    asked = len(server.requests)
    server.close()
    again = campaign(tmp_path / "b", server, replay=Replay(tmp_path / "a"), **options)
    assert run(again) == "max-execs"
    assert plans(tmp_path / "a") == plans(tmp_path / "b")
    assert engines(tmp_path / "a")["llm"] > 3
    assert len(server.requests) == asked and again.llm.model.ledger.total.requests == 0  # type: ignore[union-attr]


def test_the_state_is_a_fold_over_the_journal(server: Loopback, tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", server, max_execs=60, workers=2)
    run(made)
    assert engines(tmp_path / "c")["llm"] > 0
    fresh = LoopState(operators(), made.state.space, 1)
    for record in records(tmp_path / "c"):
        fresh.apply(record)
    assert fresh.schedule.to_map() == made.state.schedule.to_map()
    restored = LoopState(operators(), made.state.space, 1)
    restored.restore(made.state.to_map())
    assert restored.schedule.to_map() == made.state.schedule.to_map()
    made = campaign(tmp_path / "c", server, resume=True, max_execs=20)
    assert run(made) == "max-execs"


def test_an_answer_that_wants_to_be_more_than_a_program_never_runs(server: Loopback, tmp_path: Path) -> None:
    server.default = "injection"
    made = campaign(tmp_path / "c", server, engine="llm", forms=("free",), max_execs=20, no_clock=True)
    assert run(made) == "max-execs"
    assert engines(tmp_path / "c")["llm"] == 0
    lines = tries(tmp_path / "c")
    assert all(line["verdict"] == "unfit" and "not allowed" in line["why"] for line in lines)
    assert max(line["try"] for line in lines) == 3
    assert any("not allowed" in body["messages"][1]["content"] for body in server.requests)  # told when asked to mend


def test_a_program_that_eager_refuses_goes_back_with_its_error(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = iter(["eager refuses it: RuntimeError. sizes differ"])
    monkeypatch.setattr("fuzzer.llm.engine._refused", lambda observation: next(answers, ""))
    made = campaign(tmp_path / "c", server, engine="llm", forms=("free",), max_execs=12, no_clock=True)
    run(made)
    first, *later = [line for line in tries(tmp_path / "c") if line["stage"] in ("eager", "run")]
    assert first["stage"] == "eager" and "sizes differ" in first["why"]
    assert any(line["order"] == first["order"] and line["try"] > first["try"] for line in later)  # mended, then run
    (repair,) = [body for body in server.requests if "sizes differ" in body["messages"][1]["content"]]
    assert "def fn(a)" in repair["messages"][1]["content"]
    (unwritten,) = [row for row in records(tmp_path / "c") if row["t"] == "unwritten" and "sizes" in row["why"]]
    assert unwritten["outcome"]["tokens"] > 0 and unwritten["outcome"]["plan"]["engine"] == "llm"


def test_the_key_is_in_no_file(server: Loopback, tmp_path: Path) -> None:
    server.default = "echoes_key"
    server.script = ["unauthorised"]
    run(
        campaign(tmp_path / "c", server, engine="llm", max_execs=20, workers=2)
    )  # given up at once, with the key echoed
    run(campaign(tmp_path / "d", server, engine="llm", max_execs=15, no_clock=True))
    assert engines(tmp_path / "d")["llm"] > 0
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert [path for path in files if KEY.encode() in path.read_bytes()] == []


async def _advised(made: Any) -> Any:
    made.llm.in_turn = True
    made.llm.start(CampaignHost(made))
    found = await made.llm.advise()
    await made.llm.stop()
    return found


def test_advice_moves_arms_within_bounds_and_is_recorded(server: Loopback, tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", server, max_execs=30, no_clock=True)
    run(made)
    made = campaign(tmp_path / "c", server, resume=True)
    found = asyncio.run(_advised(made))
    assert found.factors and all(0.25 <= factor <= 4.0 for factor in found.factors.values())
    assert made.state.schedule.advice == found.factors
    (record,) = [row for row in records(tmp_path / "c") if row["t"] == "advice"]
    assert record["factors"] == found.factors and set(record["reasons"]) == set(found.factors)
    assert [line["kind"] for line in _events(tmp_path / "c")].count("advice") == len(found.factors)


def _events(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (path / "events.jsonl").read_text().splitlines()]
