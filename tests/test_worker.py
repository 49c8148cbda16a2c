"""The worker against a harness that misbehaves in every way it knows, without torch."""

from __future__ import annotations

import asyncio
import os
import stat
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from fuzzer.exits import Exit
from fuzzer.program import Program
from fuzzer.worker import ENDED_TWICE, Target, TargetRefused, Worker, WorkerLost, WorkerOptions
from harness import wire

LIMITS = {"stage_seconds": 1.5, "eager_seconds": 1.5, "total_seconds": 9.0, "memory": 100 << 20, "output": 1 << 20,
          "processes": 6, "probe_seconds": 1.5}  # fmt: skip
FAKE = Target(fake=True)


def program(do: str = "pass", **fake: Any) -> Program:
    return Program.parse(
        f"""import torch

META = {{"mode": "forward", "fake": { ({"do": do, **fake})!r}}}


def build_inputs():
    return (torch.ones(2),)


def fn(a):
    return a
"""
    )


def with_worker(folder: Path, use: Callable[[Worker], Awaitable[None]], target: Target = FAKE, **options: Any) -> None:
    async def run() -> None:
        worker = Worker(target, folder / "w", WorkerOptions(limits=LIMITS, **options))
        try:
            await worker.start()
            await use(worker)
        finally:
            await worker.stop()
        assert not worker.alive

    asyncio.run(run())


def test_every_misbehaviour_ends_as_it_should_and_harms_no_other_program(tmp_path: Path) -> None:
    expected = {
        "pass": ("done", "run"),
        "crash": ("signal", "run"),
        "eager_crash": ("signal", "eager"),
        "hang": ("timeout", "run"),
        "memory": ("memory", "run"),
        "garbage": ("signal", "run"),
        "output": ("output", "run"),
        "exit": ("exit", "run"),
        "close": ("exit", "run"),
        "forks": ("processes", "run"),
        "orphan": ("done", "run"),
        "compile_error": ("done", "run"),
        "wrong_value": ("done", "run"),
    }

    async def use(worker: Worker) -> None:
        pid = worker.pid
        for do, (how, stage) in expected.items():
            seen = await worker.execute(program(do))
            assert (seen.end.how, seen.end.stage) == (how, stage), (do, seen.end)
            after = await worker.execute(program("pass", coverage=[len(do)]))
            assert after.end.how == "done", do
        assert (worker.pid, worker.restarts) == (pid, 0)

    with_worker(tmp_path, use)


def test_facts_of_the_stages_before_a_crash_are_kept(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        seen = await worker.execute(program("crash"))
        assert [stage.name for stage in seen.stages] == ["build", "eager", "compile"]
        assert seen.end.signal == 11 and "SIGSEGV" in seen.end.why
        assert seen.operators == ["aten.relu.default"]
        early = await worker.execute(program("crash", stage="compile"))
        assert early.end.stage == "compile"

    with_worker(tmp_path, use)


def test_coverage_is_the_delta_of_what_is_known(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        first = await worker.execute(program(coverage=[1, 2, 3]))
        assert first.coverage == {"native": {"fake": [1, 2, 3]}}
        await worker.mark_known({"native": {"fake": [7]}})
        assert (await worker.execute(program(coverage=[3, 4, 7]))).coverage == {"native": {"fake": [4]}}
        assert (await worker.execute(program(coverage=[4]))).coverage == {}
        crashed = await worker.execute(program("crash", coverage=[9]))
        assert crashed.coverage == {"native": {"fake": [9]}}
        assert (await worker.execute(program(coverage=[8]), coverage=False)).coverage == {}

    with_worker(tmp_path, use)


def test_a_killed_server_is_replaced_and_its_killer_found_out(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        seen = await worker.execute(program("kill_server"))
        assert seen.end.how == "lost" and seen.end.why.startswith(ENDED_TWICE)
        assert worker.restarts == 1
        after = await worker.execute(program())
        assert (after.end.how, worker.restarts) == ("done", 2)

    with_worker(tmp_path, use, confine=False)


def test_in_a_namespace_of_its_own_the_server_cannot_be_killed(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        if worker.ready["protection"]["processes"] != "own namespace":
            pytest.skip(worker.ready["protection"]["processes"])
        seen = await worker.execute(program("kill_server"))
        assert (seen.end.how, worker.restarts) == ("timeout", 0)

    with_worker(tmp_path, use)


def test_a_server_killed_from_outside_costs_nothing(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        os.kill(worker.pid, 9)
        assert (await worker.execute(program())).end.how == "done"
        running = asyncio.create_task(worker.execute(program("hang")))
        await asyncio.sleep(0.1)
        os.kill(worker.pid, 9)
        assert (await running).end.how == "timeout"  # run once more, in a fresh server
        assert worker.restarts == 2

    with_worker(tmp_path, use)


def test_probes_and_executions_alternate(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        for do in ("pass", "orphan", "crash"):
            answer = await worker.probe([["x = torch.ones(2)", "x = 1"]], reset=True)
            assert [result["chosen"] for result in answer["results"]] == [0]
            assert answer["results"][0]["facts"]["x"]["shape"] == [2, 3]
            await worker.execute(program(do))

    with_worker(tmp_path, use)


@pytest.mark.parametrize(("statement", "how", "name"), [
    ("die()", "signal", "SIGSEGV"),
    ("hang()", "hang", "SIGKILL"),
    ("close()", "signal", "SIGKILL"),
    ("hog()", "memory", "SIGKILL"),
])  # fmt: skip
def test_a_dying_probe_is_told_with_its_candidate(tmp_path: Path, statement: str, how: str, name: str) -> None:
    async def use(worker: Worker) -> None:
        answer = await worker.probe([["x = 1"], ["y = 1", statement]])
        died = answer["died"]
        assert (died["how"], died["name"]) == (how, name)
        assert (died["group"], died["candidate"]) == (1, 1)
        again = await worker.probe([["z = 1"]])
        assert again["results"][0]["chosen"] == 0

    with_worker(tmp_path, use)


def test_a_lost_server_is_said_to_a_prober(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        await worker.probe([["x = 1"]])
        running = asyncio.create_task(worker.probe([["hang()"]]))
        await asyncio.sleep(0.1)
        os.kill(worker.pid, 9)
        with pytest.raises(WorkerLost):
            await running
        assert (await worker.probe([["x = 1"]]))["results"][0]["chosen"] == 0

    with_worker(tmp_path, use)


def test_symbols_and_catalogue(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        assert await worker.symbols("native", "fake", [3, 4]) == ["native:fake:3", "native:fake:4"]
        assert [record async for record in worker.catalogue()] == [{"name": "fake"}]

    with_worker(tmp_path, use)


def test_a_server_that_answers_something_else_counts_as_lost(tmp_path: Path) -> None:
    async def use(worker: Worker) -> None:
        with pytest.raises(WorkerLost, match="'refused' to 'dance'"):
            await worker._ask({"type": "dance"}, 5.0, "danced")
        assert (await worker.execute(program())).end.how == "done"

    with_worker(tmp_path, use)


# -- targets that cannot serve --------------------------------------------------------------------------------------


def _script(folder: Path, body: str, mode: int = 0o755) -> str:
    path = folder / "python"
    path.write_text(body)
    path.chmod(mode)
    return str(path)


def _refusal(target: Target, folder: Path) -> TargetRefused:
    with pytest.raises(TargetRefused) as caught:
        with_worker(folder, lambda worker: asyncio.sleep(0), target, warm=False)
    assert caught.value.exit_code == Exit.TARGET and "\n" not in str(caught.value)
    return caught.value


def test_targets_that_are_no_interpreter(tmp_path: Path) -> None:
    assert "not an executable" in str(_refusal(Target(str(tmp_path / "nothing")), tmp_path))
    assert "not an executable" in str(_refusal(Target(_script(tmp_path, "", stat.S_IRUSR)), tmp_path))
    assert "not an executable" in str(_refusal(Target(str(tmp_path)), tmp_path))
    (tmp_path / "python").unlink()
    assert "cannot be run" in str(_refusal(Target(_script(tmp_path, "just text")), tmp_path))
    assert "died while starting" in str(_refusal(Target("/bin/true"), tmp_path))


def test_a_python_without_torch(tmp_path: Path) -> None:
    bare = _script(tmp_path, f'#!/bin/sh\nexec {sys.executable} -S "$@"\n')
    assert "cannot import torch" in str(_refusal(Target(bare), tmp_path))


@pytest.mark.parametrize(("text", "says"), [
    ("raise OSError('libtorch.so: cannot open shared object file')", "cannot open shared object file"),
    ("import os; os.abort()", "died while starting"),
    ("__version__ = '1.13.1'", "too old"),
    ("x = 1", "is not PyTorch"),
])  # fmt: skip
def test_a_broken_torch(tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "torch.py").write_text(text)
    # Drops -I, which would keep the broken module off the path.
    wrapper = f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} -S "$@"\n'
    assert says in str(_refusal(Target(_script(tmp_path, wrapper)), tmp_path))


def test_mixed_versions_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "PROTOCOL", wire.PROTOCOL + 1)
    assert "versions of Eddy are mixed" in str(_refusal(FAKE, tmp_path))
