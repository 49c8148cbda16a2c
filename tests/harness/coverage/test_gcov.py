"""Counters of instrumented libraries; every scenario runs in a process of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness.coverage import symbols
from harness.coverage.gcov import GcovCoverage
from harness.coverage.helper import Unavailable

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not (shutil.which("g++") and shutil.which("gcov")), reason="needs g++ and gcov"
)

SOURCE = """\
#include <vector>
extern "C" int sign(int x) {
    if (x < 0)
        return -1;
    if (x > 0)
        return 1;
    return 0;
}
extern "C" int sum(int n) {
    std::vector<int> all(n, 2);
    int total = 0;
    for (int x : all)
        total += x;
    return total;
}
"""

RUN = """
import ctypes, json, os, signal, sys
from harness.coverage.gcov import GcovCoverage
early, late, folder = sys.argv[1:]
early = ctypes.CDLL(early)
domain = GcovCoverage()
domain.start()
early.sum(1)

def child(body):
    pid = os.fork()
    if pid == 0:
        domain.child_start(folder)
        body()
        domain.child_end()
        os._exit(0)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    found = {os.path.basename(file): lines for file, lines in domain.harvest(folder).items()}
    import shutil
    shutil.rmtree(os.path.join(folder, "gcov"), ignore_errors=True)
    return [status, found]

out = [
    child(lambda: ctypes.CDLL(late).sign(-3)),
    child(lambda: ctypes.CDLL(late).sign(3)),
    child(lambda: ctypes.CDLL(late).sign(3)),
    child(lambda: (early.sign(3), os.kill(os.getpid(), signal.SIGKILL))),
    child(lambda: early.sign(3)),
]
print(json.dumps(out), flush=True)
os._exit(0)  # as a fork server leaves: a plain exit would write counters too
"""


def build(folder: Path, name: str, *flags: str) -> Path:
    source = folder / f"{name}.cpp"
    source.write_text(SOURCE)
    path = folder / f"lib{name}.so"
    command = ["g++", "-O0", "--coverage", "-fprofile-update=atomic", "-shared", "-fPIC", *flags]
    subprocess.run([*command, str(source), "-o", str(path)], check=True, cwd=folder)
    return path


def test_lines_that_children_reach_and_nothing_before_did(tmp_path: Path) -> None:
    early, late = build(tmp_path, "early"), build(tmp_path, "late")
    folder = tmp_path / "run"
    folder.mkdir()
    command = [sys.executable, "-c", RUN, str(early), str(late), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    first, second, again, killed, inherited = json.loads(done.stdout)
    # The server's own run of `early.sum` is in what its first child writes.
    assert first[0] == 0 and first[1]["late.cpp"] == [2, 3, 4]
    assert {9, 10, 11, 12, 13, 14} <= set(first[1]["early.cpp"]) <= set(range(9, 16))
    assert second == [0, {"late.cpp": [5, 6]}]
    assert again == [0, {}]
    assert killed == [-9, {}]
    assert inherited == [0, {"early.cpp": [2, 3, 5, 6]}]
    assert not list(tmp_path.glob("*.gcda")), "nothing is written beside the objects"


def test_a_hidden_function_is_found_where_a_file_names_it(tmp_path: Path) -> None:
    path = build(tmp_path, "early")
    offset = symbols.find_function(str(path), [b"__no_such", b"__gcov_exit"])
    lines = subprocess.run(["nm", str(path)], check=True, capture_output=True, text=True).stdout.splitlines()
    assert [int(line.split()[0], 16) for line in lines if line.endswith(" __gcov_exit")] == [offset]
    assert symbols.find_function(str(build(tmp_path, "late", "-s")), [b"__gcov_exit"]) == 0
    assert symbols.find_function(__file__, [b"__gcov_exit"]) == 0
    assert symbols.find_function("/none", [b"__gcov_exit"]) == 0


def test_without_gcov_it_is_unavailable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="no gcov on PATH"):
        GcovCoverage().start()
    old = tmp_path / "gcov"
    old.write_text("#!/bin/sh\necho usage\n")
    old.chmod(0o755)
    with pytest.raises(Unavailable, match="writes no JSON"):
        GcovCoverage().start()
