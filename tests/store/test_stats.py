import json

import pytest

from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.stats import PLOT_COLUMNS, TABLE, Events, StatsFiles, aggregate, read_stats, read_status, row


@pytest.fixture
def campaign(tmp_path):
    return CampaignDirectory.create(tmp_path / "campaign", {})


def test_stats_read_back_as_numbers_and_words(campaign):
    StatsFiles(campaign).write({"execs_done": 12, "valid_rate": 0.971, "stop_reason": "2", "coverage_gcov": 5})
    stats = read_stats(campaign.fuzzer_stats)
    assert stats["execs_done"] == 12 and stats["valid_rate"] == 0.971
    assert stats["stop_reason"] == "2" and stats["coverage_gcov"] == 5
    assert set(stats) == {item.name for item in TABLE} | {"coverage_gcov"}
    with pytest.raises(KeyError):
        StatsFiles(campaign).write({"execs_dnoe": 12})


def test_the_table_has_each_name_once_and_describes_it():
    assert len({item.name for item in TABLE}) == len(TABLE)
    assert all(item.description for item in TABLE)
    assert all(row(name) in TABLE for name in PLOT_COLUMNS)


def test_machines_are_put_together_by_the_tables_rules():
    one = {"execs_done": 100, "valid_rate": 0.9, "start_time": 5, "last_update": 7, "target_torch": "2.13"}
    two = {"execs_done": 300, "valid_rate": 0.5, "start_time": 4, "last_update": 6, "target_torch": "2.5"}
    assert aggregate([one, two]) == {
        "execs_done": 400, "valid_rate": pytest.approx(0.6), "start_time": 4, "last_update": 7, "target_torch": "2.13"
    }  # fmt: skip


def test_plot_data_has_one_head_and_mends_a_torn_line(campaign):
    files = StatsFiles(campaign)
    files.plot({"run_time": 1})
    with open(campaign.plot_data, "a") as stream:
        stream.write("2, 3")
    files.plot({"run_time": 5, "valid_rate": 0.5})
    head, first, torn, last = campaign.plot_data.read_text().splitlines()
    assert head == "# " + ", ".join(PLOT_COLUMNS)
    assert first.startswith("1, 0, ") and torn == "2, 3" and last.startswith("5, ")
    assert len(first.split(",")) == len(last.split(",")) == len(PLOT_COLUMNS)


def test_events_rotate_at_their_cap_and_are_one_line_each(campaign):
    events = Events(campaign.events, max_bytes=400)
    for number in range(20):
        events.append(float(number), "finding", "a\nb", {"n": number})
    kept = list(events.read())
    assert [event["details"]["n"] for event in kept] == list(range(20))[-len(kept) :]
    assert 2 <= len(kept) < 20
    assert campaign.events.stat().st_size <= 400
    for line in campaign.events.read_text().splitlines():
        assert set(json.loads(line)) == {"time", "kind", "text", "details"}


def test_status_of_a_new_a_running_and_a_dead_campaign(campaign):
    status = read_status(campaign)
    assert status["execs_done"] == 0 and not status["running"] and status["stop_reason"] == ""
    values = {"execs_done": 9, "workers_alive": 2, "coverage_native": 4, "findings_known": 3}
    with campaign.lock():
        StatsFiles(campaign).write(values)
        status = read_status(campaign)
        assert status["running"] and status["pid"] and status["workers_alive"] == 2
        assert status["coverage"]["native"] == 4 and status["findings"]["known"] == 3
        assert set(status["findings"]) == {"confirmed", "debatable", "flaky", "known"}
    status = read_status(campaign)
    assert not status["running"] and status["workers_alive"] == 0 and status["stop_reason"] == "died"
    StatsFiles(campaign).write({**values, "stop_reason": "time is up"})
    assert read_status(campaign)["stop_reason"] == "time is up"
    json.dumps(status)
