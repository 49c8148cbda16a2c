"""``eddy triage DIR`` on the fake harness: what a campaign left is finished, once, whatever interrupts it."""

import asyncio
import json
from dataclasses import replace

import pytest
from campaign_base import FAKE, campaign, operators, planted, records, run

from fuzzer.cli import main
from fuzzer.examine import execute
from fuzzer.exits import Exit
from fuzzer.finding import State
from fuzzer.known_issues import KnownIssues
from fuzzer.labels import Judgement, Label
from fuzzer.signature import signature
from fuzzer.store.corpus_files import CorpusFiles
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.findings import FindingStore
from fuzzer.store.journal import Journal
from fuzzer.store.labels import LabelStore
from fuzzer.store.stats import read_status
from fuzzer.triage_session import SessionOptions, TriageSession
from fuzzer.worker import Worker, WorkerOptions

LIMITS = {"stage_seconds": 0.5, "eager_seconds": 0.5}


@pytest.fixture
def path(tmp_path):
    """A campaign with one finding, one suspect that waits and fails, one that waits and passes by now."""
    made = campaign(tmp_path / "camp", [planted("wrong_value"), planted("pass", 1)], max_execs=4)
    run(made)
    directory = CampaignDirectory.open(tmp_path / "camp")
    wait(directory, planted("compile_error", 2, message="no lowering for this"))
    wait(directory, planted("pass", 3), "run|wrong_value|gone")
    return tmp_path / "camp"


def wait(directory, program, major=""):
    """What a campaign does with a suspect for which it has no time."""
    major = major or asyncio.run(seen_signature(directory, program))
    CorpusFiles(directory.corpus).add({"text": program.text, "meta": program.meta, "parents": []})
    with Journal(directory.journal) as journal:
        journal.append({"t": "bucket", "major": major, "program": program.id, "at": 1.0})


async def seen_signature(directory, program):
    worker = Worker(FAKE[0], directory.worker_tmp("look"), WorkerOptions(coverage=()))
    try:
        await worker.start()
        observation, verdict = await execute(worker, program)
    finally:
        await worker.stop()
    return signature(verdict, observation).major


def session(path, **options):
    directory = CampaignDirectory.open(path)
    return TriageSession(
        directory, SessionOptions(FAKE, limits=LIMITS, **options), operators(), KnownIssues([])
    )  # fmt: skip


def triaged(path, made=None):
    made = made or session(path)
    with made.directory.lock():
        return asyncio.run(asyncio.wait_for(made.run(), 60.0))


def contents(path):
    folder = CampaignDirectory.open(path).findings
    return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}


@pytest.mark.parametrize("workers", [1, 3])
def test_suspects_become_findings_and_findings_get_what_they_lack(path, workers):
    done = triaged(path, session(path, workers=workers))
    assert (done.suspects, done.new, done.left, done.complete) == (2, 1, 0, True)
    findings = {item.kind.value: item for item in FindingStore(CampaignDirectory.open(path)).load_all()}
    assert set(findings) == {"wrong_value", "compile_error"}
    for finding in findings.values():
        assert finding.state is State.CONFIRMED
        assert finding.triage["reduction"]["complete"] and finding.triage["group"] == []
        assert "essential_features" in finding.triage and finding.triage["variants"]["inductor"] == finding.kind.value
        assert finding.triage["environment"] == ""  # a fake has none
        assert "relu" in finding.text and "relu" not in finding.reduced
    states = {r["major"]: r.get("state") for r in records(path) if r["t"] == "bucket"}
    assert "confirmed" in states.values() and states["run|wrong_value|gone"] == "dismissed"
    status = read_status(CampaignDirectory.open(path))
    assert (status["suspects_waiting"], status["findings"]["confirmed"], status["stop_reason"]) == (0, 2, "max-execs")


def test_an_index_that_cannot_be_read_costs_a_line_only(path):
    (path / "issues.sqlite").write_text("not a database, " * 100)
    made = session(path)
    told = []
    made.report = lambda kind, text: told.append(text)
    assert triaged(path, made).complete
    assert any("no index of issues" in line for line in told)


def test_a_second_session_changes_nothing(path):
    triaged(path)
    before, journal = contents(path), len(records(path))
    done = triaged(path)
    assert (done.suspects, done.steps, done.complete) == (0, 0, True)
    assert contents(path) == before and len(records(path)) == journal


def test_the_campaign_resumes_from_what_was_triaged(path):
    triaged(path)
    resumed = campaign(path, [planted("pass", 9)], resume=True, max_execs=1)
    assert resumed.state.waiting() == []
    assert sorted(bucket.state for bucket in resumed.state.buckets.values()) == ["confirmed", "confirmed", "dismissed"]
    assert resumed.state.counters.findings == {"confirmed": 2}
    assert resumed.state.counters.triage_seconds == pytest.approx(
        sum(record.get("triage", 0.0) for record in records(path)), abs=1e-6
    )
    run(resumed)


@pytest.mark.parametrize("after", range(0, 9, 2))
def test_stopping_anywhere_loses_nothing(path, after):
    made, lines = session(path), []

    def note(kind, text):
        lines.append(text)
        if len(lines) > after:
            made.stop()

    made.report = note
    first = triaged(path, made)
    assert not first.complete and first.left
    for line in contents(path).items():
        if line[0].endswith("finding.json"):
            json.loads(line[1])
    assert triaged(path).complete
    findings = FindingStore(CampaignDirectory.open(path)).load_all()
    assert sorted(item.kind.value for item in findings) == ["compile_error", "wrong_value"]


def test_a_budget_that_is_spent_begins_nothing(path):
    done = triaged(path, session(path, seconds=1e-9))
    assert (done.suspects, done.steps, done.left) == (0, 0, 3)


def test_a_suspect_whose_program_is_gone_is_dismissed(path):
    directory = CampaignDirectory.open(path)
    with Journal(directory.journal) as journal:
        journal.append({"t": "bucket", "major": "lost", "program": "0" * 16, "at": 1.0})
    assert triaged(path).complete
    assert {r.get("state") for r in records(path) if r.get("major") == "lost"} == {None, "dismissed"}


def test_a_finding_that_no_longer_shows_is_left_as_it_is(path):
    store = FindingStore(CampaignDirectory.open(path))
    finding = store.load_all()[0]
    store.save(replace(finding, text=planted("pass", 5).text, reduced=""))
    done = triaged(path)
    assert done.lost == 1 and not done.complete
    assert FindingStore(CampaignDirectory.open(path)).get(finding.signature.major).text == planted("pass", 5).text


def test_a_finding_that_one_fresh_process_showed_is_shown_by_three(path):
    store = FindingStore(CampaignDirectory.open(path))
    finding = store.load_all()[0]
    store.save(replace(finding, confirmations=1, attempts=1))
    assert triaged(path).complete
    assert FindingStore(CampaignDirectory.open(path)).get(finding.signature.major).confirmations == 3


def test_a_finding_that_another_fresh_process_does_not_show_turns_flaky(path):
    store = FindingStore(CampaignDirectory.open(path))
    finding = store.load_all()[0]
    store.save(
        replace(finding, confirmations=1, attempts=1, text=planted("wrong_value", warm_only=True).text, reduced="")
    )
    assert triaged(path).complete
    after = FindingStore(CampaignDirectory.open(path)).get(finding.signature.major)
    assert (after.state, after.confirmations) == (State.FLAKY, 1) and after.attempts == 3
    told = [record for record in records(path) if record["t"] == "sure" and "state" in record]
    assert [(record["was"], record["state"]) for record in told] == [("confirmed", "flaky")]


def test_what_shows_with_the_toolchain_of_users_alone_is_triaged_with_that(path):
    directory = CampaignDirectory.open(path)
    wait(directory, planted("wrong_gradient", 4, plain_only=True))
    done = triaged(path)
    assert (done.suspects, done.new, done.lost, done.complete) == (3, 2, 0, True)
    finding = next(item for item in FindingStore(directory).load_all() if item.kind.value == "wrong_gradient")
    assert "variants" in finding.triage and finding.confirmations == 3


def test_nothing_is_done_for_a_finding_that_is_no_bug(path):
    directory = CampaignDirectory.open(path)
    major = FindingStore(directory).load_all()[0].signature.major
    judgement = Judgement(Label.NOT_A_BUG, "", "the generator's fault", 1)
    LabelStore(directory).change(lambda labels: labels.with_label(major, judgement))
    assert triaged(path).complete
    assert "variants" not in FindingStore(directory).get(major).triage


def test_the_command_needs_the_lock_and_no_word(path, capsys):
    directory = CampaignDirectory.open(path)
    with directory.lock():
        assert main(["triage", str(path), "--target", "fake:"]) == Exit.DIRECTORY
    assert "in use by process" in capsys.readouterr().err
    assert main(["triage", str(path), "--target", "fake:", "--json"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["complete"] and told["new"] == 1 and not told["interrupted"]
    assert main(["triage", "run", str(path), "--target", "fake:"]) == Exit.DONE
    assert "0 suspects triaged" in capsys.readouterr().out


def test_recheck_prints_a_table_and_keeps_the_evidence(path, capsys):
    assert main(["triage", "recheck", str(path), "--target", "fake:", "--json"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["versions"] == ["0.0.fake"] and told["moved"] == []
    assert told["rows"][0]["versions"]["0.0.fake"]["same"]
    assert main(["triage", "recheck", str(path), "--target", "fake:"]) == Exit.DONE
    assert "same" in capsys.readouterr().out.splitlines()[1]
    finding = FindingStore(CampaignDirectory.open(path)).load_all()[0]
    assert finding.triage["versions"] == {"0.0.fake": "wrong_value"}


def test_merge_and_split_are_remembered_and_listed(path, capsys):
    triaged(path)
    assert main(["triage", "merge", str(path), "wrong-value", "compile-error"]) == 0
    assert " = " in capsys.readouterr().out
    main(["triage", "list", str(path), "--json"])
    listed = json.loads(capsys.readouterr().out)
    assert [item["size"] for item in listed["groups"]] == [2] and len({row["group"] for row in listed["findings"]}) == 1
    main(["triage", "list", str(path)])
    assert "2 findings, 1 bugs" in capsys.readouterr().out
    assert main(["triage", "split", str(path), "wrong-value", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["members"]) == 1
    assert main(["triage", "merge", str(path), "wrong-value"]) == Exit.USAGE
    assert "at least two" in capsys.readouterr().err
