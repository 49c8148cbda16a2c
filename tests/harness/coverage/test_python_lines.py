"""Line coverage of packages, in forked children of a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.coverage.helper import Unavailable
from harness.coverage.line_table import LineTable
from harness.coverage.python_lines import PythonCoverage

ROOT = Path(__file__).parents[3]

MODULE = """\
def f(x):
    if x:
        return [
            i
            for i in range(x)
        ]
    return None


def gen():
    yield 1
    yield 2


g = lambda a: a + 1; h = lambda b: (
    b - 1)
"""

SCENARIOS = """
import json, os, signal, sys
from harness.coverage.python_lines import PythonCoverage
import orchard.tree as tree
domain = PythonCoverage(("orchard",), scratch=sys.argv[1] or None)
domain.start()

def child(body, before=lambda: None):
    domain.reset()
    pid = os.fork()
    if pid == 0:
        domain.child_start()
        before()
        with domain.measuring():
            body()
        tree.f(1)  # outside: not measured
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

def lines(body, keep=False, before=lambda: None):
    status = child(body, before)
    found = domain.harvest(keep)
    assert status == 0 and set(found) <= {"orchard/tree.py"}, (status, found)
    return found.get("orchard/tree.py", [])

out = {"total": domain.total["orchard/tree.py"], "tracer": type(domain._tracer).__name__}
out["detached"] = lines(lambda: tree.f(0), before=domain.child_detach)
out["kept"] = lines(lambda: tree.f(0), keep=True)
out["first"] = lines(lambda: tree.f(0))
out["again"] = lines(lambda: tree.f(0))
out["delta"] = lines(lambda: tree.f(3))
domain.mark_known({"orchard/tree.py": [11, 12, 10_000, -4], "absent.py": [1]})
out["known"] = lines(lambda: list(tree.gen()))
status = child(lambda: (tree.h(tree.g(1)), os.kill(os.getpid(), signal.SIGKILL)))
out["killed"] = [status, domain.harvest()]
print(json.dumps(out))
"""

#: Compiled three times in forked children: not measured, measured by each tracer. Everything seen must be equal.
NEUTRAL = """
import hashlib, json, os, re, sys, warnings
warnings.simplefilter("ignore")
import torch, torch._dynamo, torch._inductor.config
from harness.coverage.events import CompilerEvents
from harness.coverage.python_lines import PythonCoverage, TraceFunction, make_tracer
torch.set_num_threads(1)
torch._inductor.config.fx_graph_cache = False
events = CompilerEvents()
events.capture_kernels()
domain = PythonCoverage(scratch=sys.argv[1])
domain.start()
x = torch.arange(24.0).reshape(4, 6)

def broken(a):
    b = a.sin() + 1
    print(end="")
    return b.argmax(1), (b if b.sum() > 0 else -b)

def inplace(a):
    a = a.clone().t()
    a[1:] += a[:-1]
    return torch.nn.functional.gelu(a).sum(0)

def gradient(a):
    a = a.detach().requires_grad_()
    (a.softmax(-1) * a).sum().backward()
    return a.grad

def child(tracer):
    domain.reset()
    if tracer is not None:
        domain._tracer = tracer
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        events.child_start()
        if tracer is None:
            domain.child_detach()
        results = []
        for fn in (broken, inplace, gradient):
            torch._dynamo.reset()
            with domain.measuring():
                results.append(str(torch.compile(fn)(x)))
        texts = [re.sub(r"# AOT ID:.*|/\\S*inductor\\S*", "", text) for text in events.captured()]
        seen = {"results": results, "texts": texts, "counters": events.collect(),
                "kernels": events.kernel_classes(texts)}
        with os.fdopen(write, "w") as pipe:
            json.dump(seen, pipe)
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text), domain.harvest(keep=True)

def missing(left, right):
    return sum(len(set(right.get(file, ())) - set(left.get(file, ()))) for file in domain.total)

plain, none = child(None)
tracers = {"fast": make_tracer(domain._table, sys.argv[1]), "plain": domain._tracer}
if sys.version_info < (3, 12):
    tracers["plain"] = TraceFunction(domain._table)
seen = {name: child(tracer) for name, tracer in tracers.items()}
print(json.dumps({
    "none": none,
    "graphs": len(plain["texts"]), "kernels": plain["kernels"], "counters": plain["counters"],
    "equal": {name: facts == plain for name, (facts, _) in seen.items()},
    "lines": {name: sum(map(len, found.values())) for name, (_, found) in seen.items()},
    "files": sorted(set.intersection(*(set(found) for _, found in seen.values()))),
    "more": missing(seen["plain"][1], seen["fast"][1]),
    "fewer": missing(seen["fast"][1], seen["plain"][1]),
}))
"""


def run(script: str, *arguments: str, path: Path = ROOT) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        env={**os.environ, "PYTHONPATH": f"{path}{os.pathsep}{ROOT}", "TORCHINDUCTOR_COMPILE_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    result = json.loads(done.stdout.splitlines()[-1])
    assert isinstance(result, dict)
    return result


@pytest.fixture(scope="module")
def orchard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("packages")
    (folder / "orchard").mkdir()
    (folder / "orchard" / "__init__.py").write_text("")
    (folder / "orchard" / "tree.py").write_text(MODULE)
    (folder / "orchard" / "template.py").write_text("{{ not Python }}")
    return folder


@pytest.mark.parametrize("helper", [False, True], ids=["python", "c"])
def test_children_report_exactly_their_new_lines(orchard: Path, tmp_path: Path, helper: bool) -> None:
    out = run(SCENARIOS, str(tmp_path) if helper else "", path=orchard)
    if sys.version_info >= (3, 12):
        assert out.pop("tracer") == "MonitoringTracer"
    else:
        assert out.pop("tracer") == ("FrameTracer" if helper and shutil.which("cc") else "TraceFunction")
    assert out == {
        "total": 11,
        "detached": [],
        "kept": [1, 2, 7],
        "first": [1, 2, 7],
        "again": [],
        "delta": [3, 4, 5],
        "known": [10],
        "killed": [-9, {"orchard/tree.py": [15, 16]}],
    }


def test_without_any_of_the_packages_the_domain_is_unavailable() -> None:
    domain = PythonCoverage(("no_such_package", "no_such.module"))
    with pytest.raises(Unavailable, match="no_such_package"):
        domain.start()


@given(st.data())
def test_marked_is_what_was_marked_among_executable_lines_not_known(data: st.DataObject) -> None:
    table = LineTable(("harness.coverage",))
    slots = st.sets(st.integers(0, len(table.known) - 1), max_size=60)
    executable = {slot for slot, byte in enumerate(table.known) if not byte}
    known, marks = data.draw(slots), data.draw(slots)
    by_file: dict[str, list[int]] = {}
    for path, base in table.base.items():
        file = f"harness/coverage/{Path(path).name}"
        end = min((other for other in table.base.values() if other > base), default=len(table.known))
        by_file[file] = [slot - base for slot in known if base <= slot < end]
        assert table.total[file] == sum(base <= slot < end for slot in executable)
    table.learn(dict(by_file))
    for slot in marks:
        table.marks[slot] = 1
    found = {(file, line) for file, lines in table.marked().items() for line in lines}
    bases = {f"harness/coverage/{Path(path).name}": base for path, base in table.base.items()}
    assert {bases[file] + line for file, line in found} == (marks & executable) - known
    table.clear()
    assert table.marked() == {}


@pytest.mark.torch
def test_measuring_does_not_change_what_the_compiler_does(tmp_path: Path) -> None:
    out = run(NEUTRAL, str(tmp_path))
    assert out["none"] == {}
    assert isinstance(out["graphs"], int) and out["graphs"] >= 4
    assert isinstance(out["counters"], dict) and any(key.startswith("graph_break.") for key in out["counters"])
    assert isinstance(out["kernels"], list) and any("red=" in kernel for kernel in out["kernels"])
    assert out["equal"] == {"fast": True, "plain": True}
    assert isinstance(out["lines"], dict) and min(out["lines"].values()) > 10_000
    assert isinstance(out["files"], list) and {
        "torch/_inductor/ir.py",
        "torch/_dynamo/bytecode_transformation.py",
    } <= set(out["files"])
    assert out["more"] == 0
    # Only some calls of code that is called often are traced (3.10, 3.11): another program reaches the rest.
    assert isinstance(out["fewer"], int) and out["fewer"] < 0.05 * out["lines"]["plain"]
