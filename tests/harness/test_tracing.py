"""The recorder: a script's own output and exit code stay, its calls and their data flow are written down."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.torch

RECORDER = Path(__file__).parent.parent.parent / "harness" / "tracing.py"


def record(tmp_path: Path, script: str, *arguments: str) -> tuple[Any, list[dict[str, Any]], dict[str, Any]]:
    """(the finished process, the recorded calls, the end)."""
    (tmp_path / "script.py").write_text(script)
    command = [sys.executable, str(RECORDER), str(tmp_path / "record"), str(tmp_path / "script.py"), *arguments]
    process = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path)
    lines = [json.loads(line) for line in (tmp_path / "record").read_text().splitlines()]
    return process, [line for line in lines if "op" in line], lines[-1].get("end", {})


SCRIPT = """
import sys
import torch
from helper import double

assert __name__ == "__main__" and sys.argv[0] == __file__, sys.argv
torch.manual_seed(0)
layer = torch.nn.Linear(3, 4)
optimiser = torch.optim.SGD(layer.parameters(), lr=0.1, foreach=False)
for step in range(20):
    index = torch.tensor([[0, 2], [5, 1]])
    hidden = torch.relu(layer(torch.ones(2, 3)))
    loss = double(hidden)[:, 1:].gather(1, index.clamp(max=1)).sum()
    optimiser.zero_grad()
    loss.backward()
    optimiser.step()
print("loss", round(loss.item(), 3), sys.argv[1:])
sys.exit(7)
"""


def test_the_script_runs_as_it_would_by_itself(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def double(x):\n    return x * 2\n")
    process, calls, end = record(tmp_path, SCRIPT, "--lr", "1")
    alone = subprocess.run(
        [sys.executable, str(tmp_path / "script.py"), "--lr", "1"], capture_output=True, text=True, cwd=tmp_path
    )
    assert (process.stdout, process.returncode, process.stderr) == (alone.stdout, 7, alone.stderr)
    assert end["error"] == "" and end["distinct"] == len(calls) < end["calls"] / 3  # twenty steps, few distinct calls

    by_op = {call["op"].rpartition(".")[2]: call for call in calls}
    linear = by_op["linear"]["n"]
    assert by_op["relu"]["args"][0]["from"] == [linear, -1]
    weight = by_op["linear"]["args"][1]
    assert weight["shape"] == [4, 3] and weight["grad"] is True and "leaf" in weight
    assert by_op["clamp"]["args"][0]["high"] == 5 and by_op["clamp"]["args"][0]["dtype"] == "int64"
    assert by_op["__getitem__"]["args"][1] == {
        "t": "literal",
        "text": "(slice(None, None, None), slice(1, None, None))",
    }
    assert any(call.get("no_grad") for call in calls if "add" in call["op"])  # the optimiser's step


def test_an_error_is_shown_as_usual_and_what_was_recorded_stays(tmp_path: Path) -> None:
    process, calls, end = record(tmp_path, "import torch\ntorch.sin(torch.ones(2))\nraise ValueError('so it goes')\n")
    assert process.returncode == 1 and "ValueError: so it goes" in process.stderr
    assert "tracing.py" not in process.stderr
    assert [call["op"] for call in calls] == ["torch.sin"] and end["error"] == "ValueError: so it goes"


def test_a_killed_script_leaves_its_calls(tmp_path: Path) -> None:
    script = "import os, torch\ntorch.cos(torch.ones(2)).sum()\nos._exit(9)\n"
    process, calls, end = record(tmp_path, script)
    assert process.returncode == 9 and [call["op"] for call in calls] == ["torch.cos", "torch.Tensor.sum"] and end == {}


def test_a_recurrent_loop_does_not_grow_without_end(tmp_path: Path) -> None:
    script = "import torch\nx = torch.ones(3)\nfor _ in range(1000):\n    x = torch.sin(x)\n"
    _process, calls, end = record(tmp_path, script)
    assert end["calls"] == 1000 and len(calls) == 4, calls
    assert calls[1]["args"][0]["from"] == [calls[0]["n"], -1]
