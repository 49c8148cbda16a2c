"""Programs that mean harm, on real torch: each comes to nothing, and the next program does not notice."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from fuzzer.judge import judge
from fuzzer.observation import Observation
from fuzzer.program import Program
from fuzzer.verdict import Kind
from fuzzer.worker import Target, Worker, WorkerOptions

pytestmark = pytest.mark.torch

LIMITS = {"stage_seconds": 20.0, "eager_seconds": 20.0, "total_seconds": 40.0, "memory": 3 << 30, "processes": 12}
SECRET = "sesame-opens-4711"
_TEXT = """import torch

os, sys = torch.os, torch.sys
META = {{"mode": "forward"}}


def build_inputs():
    return (torch.arange(6.0),)


def harm():
{harm}


def fn(a):
    {call}
    return a.sin() + 1
"""


def _program(harm: str, call: str = "torch._dynamo.disable(harm)()") -> Program:
    return Program.parse(_TEXT.format(harm="\n".join(f"    {line}" for line in harm.splitlines()), call=call))


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Executes programs on one worker for all; after each, an innocent one must pass on the same server."""
    folder = tmp_path_factory.mktemp("contained")
    patch = pytest.MonkeyPatch()
    patch.setenv("EDDY_API_KEY", SECRET)
    worker = Worker(Target(), folder / "w", WorkerOptions(limits=LIMITS))
    loop = asyncio.new_event_loop()
    number = 0

    def execute(harm: str, **more: Any) -> Observation:
        nonlocal number
        seen = loop.run_until_complete(worker.execute(_program(harm, **more)))
        number += 1
        after = loop.run_until_complete(worker.execute(_program(f"pass  # {number}", call="pass")))
        assert (judge(after).kind, worker.restarts) == (Kind.PASS, 0), (after.end, after.log)
        return seen

    try:
        loop.run_until_complete(worker.start())
        execute.worker = worker  # type: ignore[attr-defined]
        yield execute
    finally:
        loop.run_until_complete(worker.stop())
        loop.close()
        patch.undo()


def _needs(run: Any, name: str, wanted: str) -> None:
    how = run.worker.ready["protection"][name]
    if how != wanted:
        pytest.skip(f"{name}: {how}")


def test_no_network(run: Any) -> None:
    _needs(run, "network", "none")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0.2)
        port = server.getsockname()[1]
        seen = run(f"__import__('socket').create_connection(('127.0.0.1', {port}), timeout=1)")
        assert judge(seen).kind is Kind.INVALID
        with pytest.raises(TimeoutError):
            server.accept()


def test_no_secrets(run: Any) -> None:
    _needs(run, "processes", "own namespace")
    seen = run(
        """print(dict(os.environ))
for pid in os.listdir('/proc'):
    if pid.isdigit():
        print(pid, open(f'/proc/{pid}/environ', 'rb').read())
print('looked', flush=True)"""
    )
    assert "looked" in seen.log and "TORCHINDUCTOR_CACHE_DIR" in seen.log
    assert SECRET not in seen.log


def test_no_writing_elsewhere(run: Any, tmp_path: Path) -> None:
    _needs(run, "files", "scratch only")
    worker: Worker = run.worker
    stage = worker.folder / "stage" / "harness"
    before = (stage / "wire.py").read_bytes()
    places = [
        tmp_path,
        stage,
        worker.cache,
        worker.cache / "tmp",
        worker.folder,
        worker.folder / "scratch",
        Path.home(),
    ]
    seen = run(
        f"""for place in {[str(place / "evil") for place in places]}:
    try:
        open(place, 'w').close()
        print('WROTE', place)
    except OSError:
        pass
for act in (os.truncate, lambda path, _: os.unlink(path), lambda path, _: os.rename(path, 'mine')):
    try:
        act({str(stage / "wire.py")!r}, 0)
        print('CHANGED')
    except OSError:
        pass
open('mine', 'w').close()
print('tried', flush=True)"""
    )
    assert "tried" in seen.log and "WROTE" not in seen.log and "CHANGED" not in seen.log
    assert (stage / "wire.py").read_bytes() == before
    assert not any((place / "evil").exists() for place in places)
    assert judge(seen).kind is Kind.PASS


@pytest.mark.parametrize(("harm", "how", "kinds"), [
    ("while True:\n    os.fork()", "processes", {Kind.INVALID}),
    ("hog = [torch.ones(1 << 28) for _ in range(50)]", "memory", {Kind.INVALID}),
    ("while True:\n    os.write(1, b'x' * 65536)", "output", {Kind.INVALID}),
    ("with open('big', 'wb') as f:\n    f.truncate(1 << 40)", "files", {Kind.INVALID}),
    ("while True:\n    pass", "timeout", {Kind.INVALID}),
    ("os._exit(0)", "exit", {Kind.INVALID}),
    ("os.closerange(0, 1024)", "exit", {Kind.INVALID}),
])  # fmt: skip
def test_limits(run: Any, harm: str, how: str, kinds: set[Kind]) -> None:
    seen = run(harm)
    assert (seen.end.how, seen.end.stage) == (how, "eager"), (seen.end, seen.log)
    assert judge(seen).kind in kinds


def test_the_parent_cannot_be_killed(run: Any) -> None:
    _needs(run, "processes", "own namespace")
    seen = run(
        """for target in (os.getppid(), 1, -1):
    for number in (9, 15, 19, 5):
        try:
            os.kill(target, number)
        except OSError:
            pass"""
    )
    assert judge(seen).kind is Kind.PASS, (seen.end, seen.log)


@pytest.mark.parametrize("harm", [
    "__import__('shutil').rmtree(os.getcwd(), ignore_errors=True)",
    "os.chdir('/')",
    "threading = sys.modules['threading']\n"
    "threading._register_atexit(lambda: threading.Thread(target=print).start())\n"
    "threading.Thread(target=sys.modules['time'].sleep, args=(3600,)).start()",
    "torch.Tensor.cos = lambda self: 'mine'\ntorch.manual_seed = print",
    "if os.fork() == 0:\n    os.setsid()\n    sys.modules['time'].sleep(3600)",
    "signal = sys.modules['signal']\n"
    "for n in (1, 2, 3, 6, 10, 12, 13, 14, 15):\n    signal.signal(n, lambda *a: None)",
    "os.setpgid(0, 0) if os.getpid() != os.getpgrp() else None\nos.nice(19)\nsys.setrecursionlimit(10 ** 6)",
], ids=["rmtree", "chdir", "threads", "patches", "daemon", "handlers", "process"])  # fmt: skip
def test_mischief_that_stays_inside(run: Any, harm: str) -> None:
    seen = run(harm)
    assert judge(seen).kind is Kind.PASS, (seen.end, seen.log[-2000:], judge(seen).reason)


def test_breakpoints_without_their_handler_harm_one_program_only(run: Any) -> None:
    """Whoever takes SIGTRAP from native coverage breaks himself: fresh processes, without coverage, tell it apart."""
    seen = run("sys.modules['signal'].signal(5, lambda *a: None)\ntorch.linalg.lstsq(torch.eye(3), torch.ones(3, 1))")
    assert judge(seen).kind in {Kind.PASS, Kind.EAGER_CRASH, Kind.CRASH, Kind.INVALID, Kind.HARNESS_ERROR}
