"""``eddy knowledge import-issues --llm``: tiers, cache, budget, agreement."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loopback import KEY, Loopback, loopback

from fuzzer.cli import main
from fuzzer.knowledge.issues import CAUSES, TASKS, Issue
from fuzzer.llm import issues as tiers
from fuzzer.llm.issues import Read, Reading, agreement, sample
from fuzzer.llm.model import NoAnswer
from fuzzer.llm.question import Answer, Question
from fuzzer.llm.settings import Settings

ISSUES = [Issue(number, f"cumsum is wrong, case {number}", "eager and compiled differ") for number in range(1, 12)]


class Stub:
    """Answers by family; counts what it was asked."""

    settings = Settings(model="stub")

    def __init__(self, **answers: Callable[[Question], Any]) -> None:
        self.answers, self.asked = answers, list[str]()

    async def ask(self, question: Question) -> Answer:
        self.asked.append(question.family)
        return Answer(json.dumps(self.answers[question.family](question)), "stop")


def screened(relevant: Callable[[int], bool]) -> Callable[[Question], Any]:
    def answer(question: Question) -> Any:
        assert question.schema is not None
        numbers = question.schema["properties"]["verdicts"]["items"]["properties"]["number"]["enum"]
        return {"verdicts": [{"number": number, "relevant": relevant(int(number))} for number in numbers]}

    return answer


def classified(question: Question) -> Any:
    plain = {"compiled_differs": "case 1\n" in question.user, "symptom": "wrong result", "component": "dynamo"}
    return {**plain, "operators": ["cumsum"], "summary": "s", "task": "control_flow", "cause": "boundary"}


def guessed(question: Question) -> Any:
    return {"hypothesis": "h", "suspect": "s", "refuted_by": "r"}


def read(stub: Any) -> Reading:
    return asyncio.run(tiers.read(stub, ISSUES))


def test_every_class_has_words_for_the_prompt() -> None:
    assert tiers.TASK_WORDS.keys() == TASKS.keys() and tiers.CAUSE_WORDS.keys() == CAUSES.keys()


def test_each_tier_asks_about_what_the_one_before_let_through() -> None:
    stub = Stub(screen_issues=screened(lambda n: n < 4), classify_issue=classified, issue_hypothesis=guessed)
    reading = read(stub)
    assert stub.asked == ["screen_issues"] * 2 + ["classify_issue"] * 3 + ["issue_hypothesis"]
    expected = {"issues": 11, "screened": 11, "relevant": 3, "classified": 3, "hypothesised": 1}
    assert reading.counts() == expected and not reading.ended
    row = reading.issues[1].to_map()
    assert row["task"] == "control_flow" and row["hypothesis"]["by"] == "stub, prompt issue_hypothesis v1"


def test_what_screening_cannot_sort_goes_on() -> None:
    stub = Stub(screen_issues=lambda q: "?", classify_issue=lambda q: {"task": "nonsense"})
    reading = read(stub)
    assert reading.counts()["relevant"] == 11 and reading.counts()["classified"] == 0
    assert reading.useless == 2 + 11 and not reading.ended


@pytest.mark.parametrize(("wait", "asked", "ended"), [(None, 1, "no"), (5.0, 1, "no"), (0.0, 13, "")])
def test_no_answer_ends_it_unless_it_is_this_question(wait: float | None, asked: int, ended: str) -> None:
    def refuse(question: Question) -> Any:
        raise NoAnswer("no", wait)

    stub = Stub(screen_issues=refuse, classify_issue=refuse)
    assert read(stub).ended == ended and len(stub.asked) == asked


def test_the_sample_is_drawn_once_and_shrinks_as_a_person_checks() -> None:
    rows = {n: Read(n, True, "control_flow", "boundary") for n in range(1, 201)}
    drawn = sample(Reading(rows), {})
    assert len(drawn) == 10 and sample(Reading(dict(reversed(rows.items()))), {}) == drawn
    assert sample(Reading(rows), {drawn[0].number: ("x", "y")}) == drawn[1:]
    assert len(sample(Reading({1: rows[1], 2: Read(2, False)}), {})) == 1


def test_agreement_with_rules_and_people() -> None:
    issues = [Issue(1, "empty tensor: loop guard"), Issue(2, "shape inference of broadcast is wrong")]
    reading = Reading({n: Read(n, True, "control_flow", "boundary") for n in (1, 2)})
    found = agreement(reading, issues, {1: ("control_flow", "narrow_fix"), 9: ("control_flow", "boundary")})
    assert found["task_with_rules"] == 0.5 and found["verified"] == 1
    assert (found["task_with_person"], found["cause_with_person"]) == (1.0, 0.0)


# -- from the command line --------------------------------------------------------------------------------------------


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Loopback]:
    pytest.importorskip("openai")
    monkeypatch.setenv("EDDY_LLM_KEY", KEY)
    with loopback() as made:
        yield made


def imported(path: Path, server: Loopback, budget: str) -> int:
    lines = [json.dumps({"number": issue.number, "title": issue.title, "body": issue.body}) for issue in ISSUES]
    (path / "dump.jsonl").write_text("\n".join(lines))
    asked = ["--llm-endpoint", server.url, "--llm-model", "toy", "--llm-budget", budget]
    names = [str(path / "dump.jsonl"), "--out", str(path / "index")]
    return main(["knowledge", "import-issues", *names, "--llm", "--json", *asked])


def test_a_budget_ends_an_import_and_a_larger_one_goes_on(
    server: Loopback, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert imported(tmp_path, server, "8k") == 2
    told = json.loads(capsys.readouterr().out)
    assert told["imported"] == 11 and "8000 tokens" in told["llm"]["ended"] and told["llm"]["tokens"] <= 8000
    assert told["llm"]["screened"] == 11 > told["llm"]["hypothesised"]
    before = len(server.requests)
    assert imported(tmp_path, server, "2M") == 0
    told = json.loads(capsys.readouterr().out)["llm"]
    assert told["classified"] == told["hypothesised"] == told["relevant"] > 5 and len(told["check"]) == 5
    whole = len(server.requests)
    prompts = [body["messages"][1]["content"] for body in server.requests]
    assert len(set(prompts)) == len(prompts) == whole > before  # nothing was asked twice
    assert imported(tmp_path, server, "2M") == 0 and len(server.requests) == whole
    rows = [json.loads(line) for line in (tmp_path / "index.llm" / "issues.jsonl").read_text().splitlines()]
    assert [row["number"] for row in rows] == [issue.number for issue in ISSUES]
    capsys.readouterr()
    first = told["check"][0]
    names = ["--index", str(tmp_path / "index"), "--task", first["task"], "--cause", first["cause"], "--json"]
    assert main(["knowledge", "verify", str(first["number"]), *names]) == 0
    capsys.readouterr()
    assert imported(tmp_path, server, "2M") == 0
    told = json.loads(capsys.readouterr().out)["llm"]
    assert told["agreement"]["verified"] == 1 and told["agreement"]["task_with_person"] == 1.0
    assert len(told["check"]) == 4
