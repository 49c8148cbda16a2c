"""The state is a fold of the journal: live, replayed, and resumed from any snapshot it is the same."""

from __future__ import annotations

from typing import Any

import msgpack
import pytest
from campaign_base import campaign, operators, records, run

from fuzzer.features.space import FeatureSpace
from fuzzer.loop_state import LoopState, event_coverage
from fuzzer.policy.plan import Outcome, Plan


def _fresh() -> LoopState:
    return LoopState(operators(), FeatureSpace.load(), 1)


def _plain(state: LoopState) -> dict[str, Any]:
    """What a snapshot would hold."""
    return _copied(state.to_map())


def _copied(data: dict[str, Any]) -> dict[str, Any]:
    return msgpack.unpackb(msgpack.packb(data), strict_map_key=False)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A campaign with two workers, all engines and some findings, in two runs."""
    path = tmp_path_factory.mktemp("fold") / "c"
    run(campaign(path, workers=2, max_execs=70))
    made = campaign(path, resume=True, workers=2, max_execs=50)
    run(made)
    return made


def test_replaying_the_journal_gives_the_live_state(finished: Any) -> None:
    rows = records(finished.directory.path)
    assert {row["t"] for row in rows} >= {"plan", "run", "seed", "bucket"}
    replayed = _fresh()
    for row in rows:
        replayed.apply(row)
    assert replayed.counters.runs == 120 and replayed.counters.findings["confirmed"] >= 1
    assert _plain(replayed) == _plain(finished.state)
    restored = _fresh()
    restored.restore(_plain(finished.state))
    assert replayed.plan() == restored.plan()


def test_a_snapshot_anywhere_changes_nothing(finished: Any) -> None:
    rows = records(finished.directory.path)
    state, expected = _fresh(), _plain(finished.state)
    for number, row in enumerate(rows):
        if number % max(1, len(rows) // 12) == 0:
            resumed = _fresh()
            resumed.restore(_plain(state))
            assert _plain(resumed) == _plain(state)
            for later in rows[number:]:
                resumed.apply(later)
            assert _plain(resumed) == expected, f"snapshot before record {number}"
        state.apply(row)


def test_questions_and_writing_leave_no_trace(finished: Any) -> None:
    import random

    state = _fresh()
    before = _plain(state)
    state.news_of({"native": {"lib": [1, 2]}}, ["dtype=int8", "layout=expanded"])
    for family in state.schedule.operator_keys:
        state.schedule.choose_operators(family, random.Random(1), 3)
    assert _plain(state) == before


def test_records_of_a_newer_version_are_skipped() -> None:
    state = _fresh()
    before = _plain(state)
    state.apply({"t": "from the future", "x": 1})
    assert _plain(state) == before


def test_a_program_refused_as_meant_is_neither_valid_nor_invalid() -> None:
    state = _fresh()
    plan = Plan(number=0, engine="template", features=("dtype=int8",), families=("reduction",))
    for record in (
        {"outcome": Outcome(plan, "pass", 0.0, 1.0, realised=frozenset({"dtype=int8"})).to_map(), "valid": True},
        {"outcome": Outcome(plan, "invalid", 0.0, 1.0).to_map(), "valid": False, "refused": True},
    ):
        state.apply({"t": "run", "seconds": 1.0, "at": 1.0, **record})
    counters = state.counters
    assert (counters.runs, counters.valid, counters.as_meant, counters.invalid) == (2, 1, 1, 0)
    assert state.valid_rate == state.conformity == 1.0 and state.per_engine["template"] == [1, 1, 1, 1]


def test_events_count_by_powers_of_two() -> None:
    found, keys = event_coverage({"fusion": 5, "none": 0}, ["kernel a"])
    assert keys == ["events:fusion~3", "kernels:kernel a"]
    assert {file: len(ids) for file, ids in found["events"].items()} == {"counter": 1, "kernel": 1}
    assert event_coverage({"fusion": 7}, ["kernel a"]) == (found, keys)
    assert event_coverage({}, []) == ({}, [])


def test_a_suspect_without_time_for_triage_waits_until_its_bucket_is_settled() -> None:
    state = _fresh()
    state.apply({"t": "bucket", "major": "a", "program": "0123", "at": 1.0})
    state.apply({"t": "bucket", "major": "a", "at": 2.0})
    assert state.waiting() == [("a", "0123")]
    again = _fresh()
    again.restore(state.to_map())
    assert again.waiting() == [("a", "0123")]
    state.apply({"t": "bucket", "major": "a", "state": "dismissed", "count": 0, "at": 3.0})
    assert not state.waiting()
