"""Breakpoints: every scenario runs in a process of its own, which is armed; this one never is."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64" or not shutil.which("cc"),
    reason="breakpoints need Linux on x86-64 and a C compiler",
)

LIBRARY = r"""
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
int apple(int x) { return x + 1; }
int banana(int x) { return x * 2; }
int cherry(int x) { return x - 3; }
void crash(void) { *(volatile int *)0 = 1; }
void foreign(void) { __asm__ volatile("nop; int3"); }
static pthread_barrier_t barrier;
static void *together(void *x) { pthread_barrier_wait(&barrier); *(int *)x = cherry(*(int *)x); return NULL; }
int threads(void) {
    pthread_t ids[8]; int values[8], sum = 0;
    pthread_barrier_init(&barrier, NULL, 8);
    for (int k = 0; k < 8; k++) { values[k] = k; pthread_create(&ids[k], NULL, together, &values[k]); }
    for (int k = 0; k < 8; k++) { pthread_join(ids[k], NULL); sum += values[k]; }
    return sum;
}
"""

PRELUDE = """
import ctypes, json, os, signal, sys
from harness.coverage.native import NativeCoverage

def child(domain, body, before=lambda: None):
    domain.reset()
    pid = os.fork()
    if pid == 0:
        before()
        body()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""

SMALL = (
    PRELUDE
    + """
scratch, path = sys.argv[1:]
fruit = ctypes.CDLL(path)
domain = NativeCoverage(scratch, libraries=("libfruit", "libabsent"))
domain.start()
own = {"apple", "banana", "cherry", "crash", "foreign", "threads", "together"}
known = {}

def names(found):
    return sorted(own.intersection(domain.symbols("libfruit", found.get("libfruit", []))))

def scenario(body, before=lambda: None):
    status = child(domain, body, before)
    found = domain.harvest()
    return [status, names(found)]

def kill():
    fruit.banana(1)
    os.kill(os.getpid(), signal.SIGKILL)

def chained():
    fruit.foreign()

out = {"total": domain.total, "missing": sorted(domain.missing)}
out["detached"] = scenario(lambda: fruit.apple(1), domain.child_detach)
status = child(domain, lambda: fruit.apple(1))
kept = domain.harvest(keep=True)
out["kept"] = names(kept)
out["server"] = fruit.apple(1)  # what the server itself runs does not hide it from the next child
out["first"] = scenario(lambda: os._exit(fruit.apple(4)))
def unseen():
    with domain.paused():
        fruit.banana(4)
    fruit.banana(4)  # its breakpoint is gone, in this child
    os._exit(0)

out["paused"] = scenario(unseen)
out["again"] = scenario(lambda: os._exit(fruit.apple(4)))
out["killed"] = scenario(kill)
out["threads"] = scenario(lambda: os._exit(fruit.threads() + 100))
out["crash"] = scenario(fruit.crash)
out["foreign"] = scenario(chained)
out["sent"] = scenario(lambda: os.kill(os.getpid(), signal.SIGTRAP))
domain.stop()
caught = []
signal.signal(signal.SIGTRAP, lambda number, frame: caught.append(number))
out["stopped"] = [fruit.banana(21), len(caught)]
print(json.dumps(out))
"""
)

KNOWN = (
    PRELUDE
    + """
scratch, path = sys.argv[1:]
fruit = ctypes.CDLL(path)
caught = []
signal.signal(signal.SIGTRAP, lambda number, frame: caught.append(number))
domain = NativeCoverage(scratch, libraries=("libfruit",))
domain.start()
base = next(int(line.split("-")[0], 16) for line in open("/proc/self/maps") if path in line)
address = lambda name: ctypes.cast(getattr(fruit, name), ctypes.c_void_p).value - base
ids = [address("apple"), address("cherry")]
domain.mark_known({"libfruit": [*ids, *ids, 3, -1, 1 << 70], "other": [1]})
status = child(domain, lambda: os._exit(fruit.apple(1) + fruit.banana(1) + fruit.cherry(3)))
found = domain.harvest()["libfruit"]
os.kill(os.getpid(), signal.SIGTRAP)
new = address("banana") in found
print(json.dumps([status, new, bool(set(ids) & set(found)), found == sorted(found), len(caught)]))
"""
)


def run(script: str, *arguments: str) -> object:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments], capture_output=True, text=True, cwd=ROOT, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fruit")
    source = folder / "fruit.c"
    source.write_text(LIBRARY)
    path = folder / "libfruit.so"
    subprocess.run(["cc", "-O1", "-fno-inline", "-shared", "-fPIC", source, "-o", path, "-lpthread"], check=True)
    return path


def test_one_shot_breakpoints_of_a_small_library(library: Path) -> None:
    out = run(SMALL, str(library.parent), str(library))
    assert isinstance(out, dict)
    assert list(out["total"]) == ["libfruit"] and out["total"]["libfruit"] >= 7
    assert out["missing"] == ["libabsent"]
    assert out["detached"] == [0, []]
    assert out["kept"] == ["apple"]
    assert out["first"] == [5, ["apple"]]
    assert out["paused"] == [0, []]  # the next children report it
    assert out["again"] == [5, []]
    assert out["killed"] == [-9, ["banana"]]
    assert out["threads"] == [sum(range(8)) - 24 + 100, ["cherry", "threads", "together"]]
    assert out["crash"] == [-11, ["crash"]]
    assert out["foreign"] == [-5, ["foreign"]]  # an int3 of the library's own still kills
    assert out["sent"] == [-5, []]
    assert out["stopped"] == [42, 0]


def test_known_ids_are_never_reported_and_a_former_handler_is_chained(library: Path) -> None:
    assert run(KNOWN, str(library.parent), str(library)) == [4, True, False, True, 1]


TORCH = (
    PRELUDE
    + """
import torch
torch.set_num_threads(1)
x = torch.arange(12.0).reshape(3, 4)

def work():
    results = [(x @ x.T).softmax(0), x.sin().cumsum(1), x.argmax(1), torch.linalg.svdvals(x)]
    return [result.tolist() for result in results]

domain = NativeCoverage(sys.argv[1])

def told():
    read, write = os.pipe()
    status = child(domain, lambda: os.write(write, json.dumps(work()).encode())) if domain.total else plain(write)
    os.close(write)
    return status, os.read(read, 1 << 16).decode()

def plain(write):
    pid = os.fork()
    if pid == 0:
        os.write(write, json.dumps(work()).encode())
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

before = told()
domain.start()
armed = told()
found = domain.harvest()
again = told()
second = domain.harvest()
killed = child(domain, lambda: (x.erfinv(), os.kill(os.getpid(), signal.SIGKILL)))
late = domain.symbols("libtorch_cpu", domain.harvest().get("libtorch_cpu", []))
print(json.dumps({
    "same": before == armed == again and before[0] == 0,
    "total": domain.total,
    "found": {library: len(ids) for library, ids in found.items()},
    "names": domain.symbols("libtorch_cpu", found["libtorch_cpu"]),
    "second": second,
    "killed": killed,
    "late": late,
}))
"""
)


@pytest.mark.torch
def test_torch_computes_the_same_under_breakpoints_and_reports_only_what_is_new(tmp_path: Path) -> None:
    out = run(TORCH, str(tmp_path))  # leaves by the plain way, armed: must not crash
    assert isinstance(out, dict)
    assert out["same"]
    assert out["total"]["libtorch_cpu"] > 100_000
    assert out["found"]["libtorch_cpu"] > 100
    assert any("softmax" in name for name in out["names"]), "demangled names of reached kernels"
    assert out["second"] == {}
    assert out["killed"] == -9
    assert any("erfinv" in name for name in out["late"])
