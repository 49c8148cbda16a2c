"""``eddy experiment`` on the fake target: what is kept, what is resumed, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import experiment as verb
from fuzzer.cli import main
from fuzzer.experiment import Spec, Trial
from fuzzer.store.directory import CampaignDirectory
from fuzzer.store.stats import read_status

ARMS = 'options = ["--no-clock"]\n[arms]\nplain = []\nplanted = ["--plant", "relu"]\n'


@pytest.fixture
def arms(tmp_path: Path) -> Path:
    (tmp_path / "arms.toml").write_text(ARMS)
    return tmp_path / "arms.toml"


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Trials as they are run: here, instead of by a process of their own, and without anything but counts."""
    names: list[str] = []

    def run_trial(spec: Spec, folder: Path, trial: Trial) -> tuple[bool, str]:
        names.append(trial.name)
        path = folder / trial.name
        directory = CampaignDirectory.open(path) if path.exists() else CampaignDirectory.create(path, {})
        done = int(read_status(directory)["execs_done"])
        directory.fuzzer_stats.write_text(f"execs_done : {done + spec.execs}\nrun_time : 10\nstop_reason : max-execs\n")
        return False, ""

    monkeypatch.setattr(verb, "_run_trial", run_trial)
    return names


def experiment(path: Path, *options: str) -> int:
    return main(["experiment", str(path), "--target", "fake:", "--json", *options])


def result(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    return dict(json.loads(capsys.readouterr().out))


def test_finished_trials_are_kept_and_more_repeats_are_added(
    arms: Path, ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment(tmp_path / "x", "--file", str(arms), "--execs", "9", "--seed", "0") == 0
    first = result(capsys)
    assert (
        first["complete"] and [row["arm"] for row in first["arms"]] == ["plain", "planted"] and not first["differences"]
    )
    assert first["arms"][0]["mean"]["programs"] == 9.0 and first["arms"][0]["mean"]["programs_per_hour"] == 3240.0
    assert main(["experiment", str(tmp_path / "x"), "--repeat", "3", "--json"]) == 0
    second = result(capsys)
    assert ran == ["plain-0", "planted-0", "plain-1", "planted-1", "plain-2", "planted-2"]
    assert second["differences"]["planted"]["programs"]["pairs"] == 3
    assert main(["experiment", str(tmp_path / "x"), "--json"]) == 0 and len(ran) == 6  # the table alone
    assert len(result(capsys)["arms"][0]["trials"]) == 3


def test_a_trial_that_was_cut_off_gets_the_rest_of_its_budget(
    arms: Path, ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "x" / "plain-1"
    CampaignDirectory.create(path, {}).fuzzer_stats.write_text("execs_done : 6\nrun_time : 3\nstop_reason : died\n")
    assert experiment(tmp_path / "x", "--file", str(arms), "--execs", "9", "--arms", "plain") == 0
    assert result(capsys)["arms"][0]["mean"]["programs"] == 9.0


def test_another_experiment_is_refused(
    arms: Path, ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert experiment(tmp_path / "x", "--file", str(arms), "--execs", "9") == 0
    assert experiment(tmp_path / "x", "--file", str(arms), "--execs", "10") == 6
    assert "another experiment" in capsys.readouterr().err and len(ran) == 2


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--arms", "template"], "needs an end"),
        (["--arms", "nosuch", "--execs", "1"], "no arm 'nosuch'"),
        (["--execs", "1"], "needs arms"),
        (["--arms", "mixed", "--execs", "1"], "arm mixed: a language model needs --llm-endpoint"),
        (["--file", "bad.toml", "--execs", "1"], "arm broken: "),
        (["--file", "odd.toml", "--execs", "1"], "options are a list of texts"),
    ],
)
def test_what_cannot_work_is_said_before_anything_runs(
    options: list[str], words: str, ran: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    Path("bad.toml").write_text('[arms]\nfine = []\nbroken = ["--no-such-option"]\n')
    Path("odd.toml").write_text('[arms]\na = "--no-clock"\n')
    assert experiment(tmp_path / "x", *options) == 2
    assert words in capsys.readouterr().err
    assert not ran and not (tmp_path / "x").exists()


def test_arms_with_a_model_get_the_endpoint(tmp_path: Path, ran: list[str]) -> None:
    model = ["--llm-endpoint", "http://127.0.0.1:1/v1", "--llm-model", "toy", "--llm-budget", "1k"]
    assert experiment(tmp_path / "x", "--arms", "template,mixed", "--execs", "1", *model) == 0
    spec = Spec.from_map(verb._toml(tmp_path / "x" / "experiment.toml"), "x")
    assert spec.arms[0].options == () and spec.arms[1].options == (*model, "--engine", "mixed")
    assert spec.options == ("--target", "fake:")


def test_ctrl_c_drains_the_campaign_and_the_same_command_goes_on(arms: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fuzzer", "experiment", str(tmp_path / "x"), "--target", "fake:", "--json"]
    command += ["--file", str(arms), "--arms", "plain", "--workers", "1", "--execs", "100000"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    journal, deadline = tmp_path / "x" / "plain-1" / "journal.msgpack", time.monotonic() + 180.0
    while not (journal.exists() and journal.stat().st_size > 2000) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=180.0)
    assert process.returncode == 130, err
    assert json.loads(out)["complete"] is False and "interrupted" not in out
    status = read_status(CampaignDirectory.open(tmp_path / "x" / "plain-1"))
    assert not status["running"] and status["stop_reason"] == "interrupt" and status["execs_done"] > 0
    assert not (tmp_path / "x" / "plain-1.json").exists()
    # The rest of the budget, in a process of its own, to its end.
    spec = (tmp_path / "x" / "experiment.toml").read_text()
    (tmp_path / "x" / "experiment.toml").write_text(spec.replace("100000", str(status["execs_done"] + 2)))
    again = subprocess.run([*command[:5], "--json"], capture_output=True, text=True, timeout=180.0)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["arms"][0]["mean"]["programs"] == status["execs_done"] + 2
