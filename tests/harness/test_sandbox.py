"""Protection as the kernel gives it: what is said to be closed is closed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

_CHILD = """
import json, os, socket, sys
from harness import sandbox

def attempt(act):
    try:
        act()
        return "done"
    except OSError as error:
        return type(error).__name__

inside, outside, port, outer = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
said = sandbox.confine([inside])
seen = {
    "inside": attempt(lambda: open(inside + "/new", "w").close()),
    "outside": attempt(lambda: open(outside + "/new", "w").close()),
    "truncate": attempt(lambda: os.truncate(outside + "/precious", 0)),
    "chmod": attempt(lambda: os.unlink(outside + "/precious")),
    "network": attempt(lambda: socket.create_connection(("127.0.0.1", port), timeout=2)),
    "signal": attempt(lambda: os.kill(outer, 0)),
    "environ": attempt(lambda: open(f"/proc/{outer}/environ", "rb").close()),
    "null": attempt(lambda: open("/dev/null", "w").close()),
}
child = os.fork()
if child == 0:
    os.mkdir(inside + "/own")
    sandbox.narrow([inside + "/own"])
    seen = {
        "own": attempt(lambda: open(inside + "/own/x", "w").close()),
        "scratch": attempt(lambda: open(inside + "/x", "w").close()),
        "server": attempt(lambda: os.kill(os.getppid(), 0)),
    }
    print(json.dumps(seen), flush=True)
    os._exit(0)
os.waitpid(child, 0)
print(json.dumps([said, seen]), flush=True)
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Any:
    import socket

    folder = tmp_path_factory.mktemp("sandbox")
    inside, outside = folder / "in", folder / "out"
    inside.mkdir()
    outside.mkdir()
    (outside / "precious").write_text("data")
    with socket.create_server(("127.0.0.1", 0)) as server:
        command = [sys.executable, "-c", _CHILD, str(inside), str(outside), str(server.getsockname()[1])]
        done = subprocess.run(
            [*command, str(os.getpid())], capture_output=True, text=True, timeout=60, check=True,
            cwd=Path(__file__).parents[2],
        )  # fmt: skip
    assert (outside / "precious").read_text() == "data" or "scratch only" not in done.stdout
    narrowed, both = (json.loads(line) for line in done.stdout.splitlines())
    return both[0], both[1], narrowed


def test_network(seen: Any) -> None:
    said, found, _ = seen
    assert (found["network"] == "done") == said["network"].startswith("open")


def test_files(seen: Any) -> None:
    said, found, narrowed = seen
    assert found["inside"] == found["null"] == "done" == narrowed["own"]
    closed = said["files"] == "scratch only"
    assert [found[name] == "done" for name in ("outside", "truncate", "chmod")] == [not closed] * 3
    assert (narrowed["scratch"] == "done") is not closed


def test_processes(seen: Any) -> None:
    said, found, narrowed = seen
    if said["processes"] != "own namespace":
        pytest.skip(said["processes"])
    assert (found["environ"], found["signal"]) == ("FileNotFoundError", "ProcessLookupError")
    assert narrowed["server"] in ("PermissionError", "done")  # "done" where Landlock is older than version 6
