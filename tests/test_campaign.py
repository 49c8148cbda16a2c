"""Whole campaigns on the fake harness: what they find, count, keep, and how they stop."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from campaign_base import Planted, campaign, planted, records, run

from fuzzer.exits import Exit, UserError
from fuzzer.program import Program
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.stats import read_status


def _findings(path: Path) -> dict[str, str]:
    """Kind → state of what is stored."""
    return {item.kind.value: item.state.value for item in FindingStore(CampaignDirectory.open(path)).load_all()}


def _untimed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Records without what the clock wrote."""
    timeless = []
    for row in rows:
        row = {key: value for key, value in row.items() if key not in ("at", "seconds")}
        timeless.append(row)
    return timeless


def test_planted_faults_are_found_and_nothing_else(tmp_path: Path) -> None:
    programs = [
        *(planted("pass", number) for number in range(6)),
        planted("compile_error", 10),
        planted("wrong_value", 11, op="aten.sin.default"),
        planted("crash", 12, op="aten.cos.default"),
        planted("wrong_value", 13, op="aten.exp.default", warm_only=True),  # never in a fresh process
        planted("wrong_value", 14, op="aten.log.default", variants=[""]),  # not when run again
        planted("invalid", 15),
        planted("missing_check", 16),
        planted("exit", 17),
    ]
    made = campaign(tmp_path / "c", programs, workers=2, max_execs=70)
    assert run(made) == "max-execs"
    assert Counter(
        (item.kind.value, item.state.value, item.confirmations, item.attempts)
        for item in FindingStore(made.directory).load_all()
    ) == {
        ("compile_error", "confirmed", 3, 3): 1,
        ("crash", "confirmed", 3, 3): 1,
        ("wrong_value", "confirmed", 3, 3): 1,
        ("missing_check", "confirmed", 3, 3): 1,
        ("wrong_value", "flaky", 0, 3): 1,
    }
    assert len(list(made.directory.flaky.iterdir())) == 1
    assert len(list(made.directory.findings.iterdir())) == 4
    for folder in made.directory.findings.iterdir():
        assert {"finding.json", "repro.py", "report.md"} <= {item.name for item in folder.iterdir()}

    counters = made.state.counters
    assert counters.runs == 70 == sum(counters.kinds.values())
    assert counters.kinds["pass"] >= 30 and counters.kinds["invalid"] >= 8
    assert counters.harness_errors == 0 and counters.unwritten == 0
    assert counters.dismissed == 1
    assert sum(bucket.count for bucket in made.state.buckets.values()) == counters.suspects
    assert {state for bucket in made.state.buckets.values() for state in [bucket.state]} == {
        "confirmed",
        "flaky",
        "dismissed",
    }
    # Every planted program reached an id that no other reached; those that eager refuses are not kept.
    assert made.state.known.totals["native"] == len(programs)
    kept = {seed.id for seed in made.state.corpus.seeds}
    assert {program.id for program in programs[:6]} <= kept
    assert not kept & {program.id for program in programs[-3:]}
    assert all(made.corpus_files.read(seed) is not None for seed in kept)
    status = read_status(made.directory)
    assert (status["execs_done"], status["findings"]["confirmed"], status["findings"]["flaky"]) == (70, 4, 1)
    assert (status["running"], status["workers_alive"], status["stop_reason"]) == (False, 0, "max-execs")


def test_faults_of_the_harness_are_counted_and_are_no_findings(tmp_path: Path) -> None:
    programs = [planted("pass"), planted("kill_server", 1), planted("garbage", 2), planted("pass", 3)]
    made = campaign(tmp_path / "c", programs, max_execs=9)
    made.fleet.workers[0].options = _unconfined(made)
    assert run(made) == "max-execs"
    assert _findings(tmp_path / "c") == {}
    counters = made.state.counters
    assert counters.runs == 9
    assert counters.kinds["pass"] == 5
    assert counters.harness_errors == counters.kinds["harness_error"] > 0
    assert made.fleet.workers[0].restarts >= 4


def test_servers_that_die_again_and_again_end_the_campaign(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", [planted("kill_server", number) for number in range(9)])
    made.fleet.workers[0].options = _unconfined(made)
    with pytest.raises(UserError, match="died 5 times in a row") as caught:
        run(made)
    assert caught.value.exit_code == Exit.TARGET and made.state.counters.kinds == {"invalid": 5}


def _unconfined(made: Any) -> Any:
    from dataclasses import replace

    return replace(made.fleet.workers[0].options, confine=False)


def test_a_flood_of_suspects_does_not_starve_the_search(tmp_path: Path) -> None:
    words = [f"{a}{b}" for a in "abcdefgh" for b in "abcdefgh"]
    programs = [planted("compile_error", n, message=f"assertion {word}") for n, word in enumerate(words)]
    made = campaign(tmp_path / "c", programs, max_execs=len(words), no_clock=True)
    assert run(made) == "max-execs"
    assert len(made.state.buckets) == len(words)
    triaged = [record for record in records(tmp_path / "c") if record["t"] == "bucket" and "triage" in record]
    waiting = [bucket for bucket in made.state.buckets.values() if bucket.state == "new"]
    assert 3 <= len(triaged) <= 12
    assert len(waiting) == len(words) - len(triaged)
    # A waiting bucket is looked at when it comes again and time allows.
    assert all(bucket.count == 1 for bucket in waiting)


def test_one_fresh_process_must_show_a_fault_at_once_the_others_when_no_suspect_waits(tmp_path: Path) -> None:
    programs = [planted("compile_error", 1, message="boom"), *(planted("pass", n) for n in range(30))]
    made = campaign(tmp_path / "c", programs, max_execs=1)
    run(made)
    (finding,) = FindingStore(made.directory).load_all()
    assert (finding.state.value, finding.confirmations, finding.attempts) == ("confirmed", 1, 1)

    resumed = campaign(tmp_path / "c", programs[1:], max_execs=20, resume=True)
    run(resumed)
    (finding,) = FindingStore(made.directory).load_all()
    assert (finding.state.value, finding.confirmations, finding.attempts) == ("confirmed", 3, 3)
    sure = [record for record in records(tmp_path / "c") if record["t"] == "sure"]
    assert len(sure) == 1 and sure[0]["triage"] > 0 and resumed.state.counters.findings == {"confirmed": 1}


def test_a_finding_that_another_fresh_process_does_not_show_turns_flaky(tmp_path: Path) -> None:
    fault = planted("compile_error", 1, message="boom")
    made = campaign(tmp_path / "c", [fault], max_execs=1)
    run(made)
    finding = FindingStore(made.directory).load_all()[0]
    FindingStore(made.directory).save(replace(finding, text=planted("pass", 2).text, reduced=""))
    resumed = campaign(tmp_path / "c", [planted("pass", n) for n in range(30)], max_execs=10, resume=True)
    run(resumed)
    (finding,) = FindingStore(made.directory).load_all()
    assert (finding.state.value, finding.confirmations) == ("flaky", 1) and finding.attempts == 3
    assert resumed.state.counters.findings == {"confirmed": 0, "flaky": 1}
    assert {bucket.state for bucket in resumed.state.buckets.values() if bucket.finding} == {"flaky"}


def test_a_campaign_that_stops_at_a_finding_is_sure_of_it(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", [planted("compile_error", 1)], exit_on_finding=True)
    assert run(made) == "finding"
    assert FindingStore(made.directory).load_all()[0].confirmations == 3


def test_what_is_probably_a_finding_again_waits_behind_what_is_not(tmp_path: Path) -> None:
    sine, both = "aten.sin.default", "aten.sin.default aten.cos.default"
    programs = [planted("wrong_value", 1, op=sine), planted("wrong_value", 2, op=both), planted("pass", 3)]
    made = campaign(tmp_path / "c", programs, max_execs=3)
    run(made)
    buckets = [record for record in records(tmp_path / "c") if record["t"] == "bucket"]
    assert [(record["major"], record.get("state")) for record in buckets] == [
        ("run|wrong_value|sin", "confirmed"),
        ("run|wrong_value|cos,sin", None),
        ("run|wrong_value|cos,sin", "confirmed"),
    ]


def test_results_after_the_stop_are_no_findings(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", [planted("wrong_value")])
    made.engine = Planted([planted("wrong_value")], after=lambda count: made.stop("enough"))  # type: ignore[assignment]
    assert run(made) == "enough"
    assert _findings(tmp_path / "c") == {} and made.state.counters.suspects == 0


def test_a_stop_during_triage_keeps_nothing_of_it(tmp_path: Path) -> None:
    made = campaign(tmp_path / "c", [planted("compile_error")])
    made.note = lambda kind, text: None  # type: ignore[method-assign]

    async def stopped_in_triage() -> str:
        running = asyncio.create_task(made.run())
        while not made.suspects.triaging:
            await asyncio.sleep(0.005)
        made.stop("enough")
        return await running

    with made.directory.lock():
        assert asyncio.run(stopped_in_triage()) == "enough"
    assert _findings(tmp_path / "c") == {} and made.state.buckets == {}


def test_limits_and_the_stop_file(tmp_path: Path) -> None:
    made = campaign(tmp_path / "a", [planted("pass", number) for number in range(5)], max_seconds=1.2)
    assert run(made) == "max-time"
    made = campaign(tmp_path / "b", [planted("pass", number) for number in range(5)])
    made.engine = Planted(  # type: ignore[assignment]
        [planted("pass")], after=lambda count: count == 3 and made.directory.request_stop("lunch")
    )
    assert run(made) == "STOP file: lunch"
    made = campaign(tmp_path / "c", [planted("compile_error")], exit_on_finding=True)
    assert run(made) == "finding"
    assert _findings(tmp_path / "c") == {"compile_error": "confirmed"}


def test_a_target_that_dies_for_good_ends_the_campaign_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzzer.fleet._BACKOFF", (0.01, 0.01))
    made = campaign(tmp_path / "c", [planted("pass")])

    def broken(count: int) -> None:
        if count == 5:
            made.fleet.workers[0].target = _no_target()
            made.fleet.workers[0]._process.kill()  # type: ignore[union-attr]

    made.engine = Planted([planted("pass")], after=broken)  # type: ignore[assignment]
    with pytest.raises(UserError) as caught:
        run(made)
    assert caught.value.exit_code == Exit.TARGET and "not an executable" in str(caught.value)
    assert made.state.counters.runs >= 3
    resumed = campaign(tmp_path / "c", [planted("pass")], resume=True, max_execs=2)
    assert run(resumed) == "max-execs"


def _no_target() -> Any:
    from fuzzer.worker import Target

    return Target("/nowhere/python")


def test_the_same_seed_gives_the_same_sequence(tmp_path: Path) -> None:
    options: dict[str, Any] = {"no_clock": True, "workers": 1, "seed": 7}
    whole = campaign(tmp_path / "a", max_execs=60, **options)
    run(whole)
    run(campaign(tmp_path / "b", max_execs=60, **options))
    # … and in three parts.
    run(campaign(tmp_path / "c", max_execs=20, **options))
    run(campaign(tmp_path / "c", resume=True, max_execs=25, **options))
    part = campaign(tmp_path / "c", resume=True, max_execs=15, **options)
    run(part)
    first = _untimed(records(tmp_path / "a"))
    assert Counter(record["t"] for record in first)["run"] == 60
    assert {record["outcome"]["plan"]["engine"] for record in first if record["t"] == "run"} == {"template", "mutate"}
    assert first == _untimed(records(tmp_path / "b"))
    assert first == _untimed(records(tmp_path / "c"))
    run(campaign(tmp_path / "d", max_execs=60, **{**options, "seed": 8}))
    assert first != _untimed(records(tmp_path / "d"))


def test_news_is_forgotten_once_all_workers_heard_it(tmp_path: Path) -> None:
    programs = [planted("pass", number) for number in range(200)]
    made = campaign(tmp_path / "c", programs, workers=2, max_execs=200)
    run(made)
    assert made.state.known.totals["native"] >= 198  # what ran when the last result came is dropped
    assert len(made.fleet._news) < 50


def test_toolchains_that_disagree_are_told(tmp_path: Path) -> None:
    def is_audited(program: Program) -> bool:
        interpreted = int(program.id[:8], 16) < 0.75 * 2**32
        return int(program.id, 16) % 50 == 0 and not interpreted

    audited = [n for n in range(5000) if is_audited(planted("wrong_value", n, variants=["plain"]))]
    told: list[str] = []
    made = campaign(tmp_path / "c", [planted("wrong_value", audited[0], variants=["plain"])], max_execs=1)
    made.report = lambda kind, text: told.append(text)
    run(made)
    assert any("toolchains disagree" in text for text in told)
    counters = made.state.counters
    assert (counters.audits, counters.audits_differing) == (1, 1)
    assert counters.suspects == 1, "a fault that only the plain toolchain shows counts"

    passing = next(program for n in range(1000) if int((program := planted("pass", n)).id, 16) % 50 == 0)
    same = campaign(tmp_path / "same", [passing], max_execs=1)
    run(same)
    assert (same.state.counters.audits, same.state.counters.audits_differing) == (1, 0)

    full = campaign(tmp_path / "full", [planted("wrong_value", audited[0], variants=["plain"])], max_execs=1, full=True)
    run(full)
    assert full.state.counters.audits == 0


def test_given_programs_are_seeds(tmp_path: Path) -> None:
    given = [planted("pass", n) for n in range(3)]
    made = campaign(tmp_path / "c", max_execs=30)
    assert made.give([*given, given[0]]) == 3
    assert run(made) == "max-execs"
    assert any(record["t"] == "run" and record["outcome"]["plan"].get("seed") for record in records(tmp_path / "c"))
    resumed = campaign(tmp_path / "c", resume=True, max_execs=1)
    assert all(program.id in resumed.state.corpus for program in given) and resumed.give(given) == 0
    resumed.journal.close()
