"""Basic blocks of a library compiled here: what is armed are instructions, and what ran is what is reported."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from small_library import build_library, needs_compiler, symbols

from fuzzer.coverage_blocks import NotUnderstood, find_blocks, leaders
from fuzzer.exits import UserError

capstone = pytest.importorskip("capstone")
pytestmark = needs_compiler

ROOT = Path(__file__).parents[2]

#: Each marker is a label inside the block that it names; `atomic` has a locked instruction at the start of a block.
SOURCE = r"""
#define HERE(name) __asm__ volatile(".globl here_" #name "\nhere_" #name ":" ::: "memory")
static int counter;
extern "C" {
int branch(int x) {
    if (x < 0) { HERE(negative); return x * 3; }
    int sum = 0;
    for (int k = 0; k < x; k++) { HERE(body); sum += k * k ^ x; if (sum == 1 << 20) { HERE(never); sum = 7; } }
    if (x > 100) { HERE(large); sum -= x; } else { HERE(small); sum += x; }
    return sum;
}
int atomic(int x) { if (x & 1) { HERE(locked); __atomic_fetch_add(&counter, x, __ATOMIC_SEQ_CST); } return counter; }
int table(int x) {
    switch (x) {
        case 0: return 3; case 1: counter++; return 5; case 2: return counter; case 3: counter = 2; return 1;
        case 4: counter--; return 8; case 5: return -counter; case 6: counter += 6; return 0; default: return 4;
    }
}
int into(int x) { __asm__ goto("testl %0, %0\njz %l[end]\njmp *%1" :: "r"(x), "r"(&&end) : "cc" : end); end: return x; }
int straight(int x) { return x + 1; }
}
"""

RUN = """
import ctypes, json, os, sys
from harness.coverage.native import NativeCoverage
scratch, path, blocks = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
library = ctypes.CDLL(path)
calls = [("branch", -5), ("branch", 3), ("branch", 200), ("branch", 0), ("atomic", 2), ("atomic", 3), ("table", 4)]

def results():
    return [getattr(library, name)(x) for name, x in calls]

def child(x=None, name=None):
    domain.reset()
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        out = results() if name is None else getattr(library, name)(x)
        os.write(write, json.dumps(out).encode())
        os._exit(0)
    os.close(write)
    said = os.read(read, 4096)
    os.close(read)
    os.waitpid(pid, 0)
    return json.loads(said), domain.harvest(keep=name is not None).get("libblocks", [])

domain = NativeCoverage(scratch, libraries=("libblocks",))
domain.start()
plain, functions = child()
added = domain.arm({"libblocks": blocks, "libother": [1]})
again = domain.arm({"libblocks": blocks + [functions[0], 1 << 31]})
seen = {f"{name} {x}": child(x, name)[1] for name, x in calls}
armed, found = child()
twice, rest = child()
more = domain.arm({"libblocks": blocks})
domain.stop()
print(json.dumps({
    "same": plain == armed == twice, "functions": functions, "added": added, "again": again, "more": more,
    "seen": seen, "found": found, "rest": rest, "after": results()[:4] == plain[:4],
}))
"""


def labels(path: Path) -> dict[str, int]:
    lines = subprocess.run(["nm", str(path)], check=True, capture_output=True, text=True).stdout
    return {name: int(at, 16) for at, name in re.findall(r"^(\w+) T here_(\w+)$", lines, re.MULTILINE)}


def test_what_runs_is_reported_block_by_block_and_results_stay(tmp_path: Path) -> None:
    path = build_library(tmp_path / "libblocks.so", SOURCE)
    named = {name: address for name, (address, _) in symbols(path).items()}
    blocks = find_blocks(path, [named[name] for name in ("branch", "atomic", "table", "into", "straight")])
    assert blocks.starts.keys() == {named["branch"], named["atomic"], named["straight"]}
    assert blocks.skipped == {"indirect jump": 2} and blocks.starts[named["straight"]] == ()
    command = [sys.executable, "-c", RUN, str(tmp_path), str(path), json.dumps(blocks.addresses)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=120)
    assert done.returncode == 0, done.stderr[-2000:]
    out = json.loads(done.stdout)
    assert out["same"] and out["after"] and out["added"] == {"libblocks": len(blocks.addresses)}
    assert out["again"] == out["more"] == {"libblocks": 0}
    assert out["rest"] == [] and not set(out["functions"]) & set(out["found"])
    assert set(out["found"]) <= set(blocks.addresses)

    edges = sorted([*blocks.addresses, *named.values()])

    def ran(marker: str, call: str) -> bool:
        """Whether the block that holds a label was reported for a call."""
        start = max(edge for edge in edges if edge <= labels(path)[marker])
        return start in out["seen"][call]

    assert ran("negative", "branch -5") and not ran("body", "branch -5")
    assert ran("body", "branch 3") and ran("small", "branch 3")
    assert not ran("negative", "branch 3") and not ran("large", "branch 3") and not ran("never", "branch 200")
    assert ran("large", "branch 200") and not ran("small", "branch 200")
    assert ran("small", "branch 0") and not ran("body", "branch 0")
    assert ran("locked", "atomic 3") and not ran("locked", "atomic 2")


@pytest.mark.skipif(not shutil.which("objdump"), reason="objdump is the reference")
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3"])
def test_block_starts_are_instructions_and_no_padding(tmp_path: Path, level: str) -> None:
    path = build_library(tmp_path / "libblocks.so", SOURCE, level, "-fcf-protection=full")
    named = {name: address for name, (address, _) in symbols(path).items()}
    blocks = find_blocks(path, named.values())
    text = subprocess.run(["objdump", "-d", "-w", str(path)], check=True, capture_output=True, text=True).stdout
    instructions = {int(at, 16): words for at, words in re.findall(r"^ +(\w+):\t[^\t]+\t(.*)$", text, re.MULTILINE)}
    assert len(blocks.addresses) > 5
    for address in blocks.addresses:
        assert address in instructions and not re.match(
            r"(data16 |cs )*(nop|int3|xchg +%ax,%ax)", instructions[address]
        )


Row = tuple[int, int, str, str]


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([(0x10, 2, "je", "0x14"), (0x12, 2, "nop", ""), (0x14, 1, "ret", "")], (0x14,)),
        ([(0x10, 2, "jmp", "0x90"), (0x12, 2, "je", "0x10"), (0x14, 1, "ret", "")], ()),  # a tail call; unreachable
        ([(0x10, 2, "bnd jmp", "0x14"), (0x12, 2, "int3", ""), (0x14, 1, "ret", "")], (0x14,)),
        ([(0x10, 2, "loop", "0x10"), (0x12, 2, "rep movsb", ""), (0x14, 1, "ret", "")], (0x12,)),
        ([(0x10, 2, "je", "0x13"), (0x12, 2, "lock inc", ""), (0x14, 1, "ret", "")], "branch into an instruction"),
        ([(0x10, 2, "jmp", "rax"), (0x12, 2, "nop", ""), (0x14, 1, "ret", "")], "indirect jump"),
        ([(0x10, 2, "jmp", "qword ptr [rip + 0x2fe2]"), (0x12, 3, "nop", "")], "indirect jump"),
        ([(0x10, 2, "xbegin", "0x14"), (0x12, 2, "nop", ""), (0x14, 1, "ret", "")], "unusual control flow"),
        ([(0x10, 2, "je", "0x14"), (0x12, 2, "nop", "")], "undecodable bytes"),
        ([], "undecodable bytes"),
    ],
)
def test_leaders(rows: list[Row], expected: tuple[int, ...] | str) -> None:
    if isinstance(expected, tuple):
        assert leaders(rows, 0x10, 5) == expected
    else:
        with pytest.raises(NotUnderstood, match=expected):
            leaders(rows, 0x10, 5)


def test_without_capstone_there_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "capstone", None)
    with pytest.raises(UserError, match=r"need the package capstone; pip install 'eddyfuzz\[blocks\]'"):
        find_blocks(tmp_path / "any.so", [1])
