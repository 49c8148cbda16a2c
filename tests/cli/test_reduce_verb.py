import json

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit
from fuzzer.program import Program

TEXT = """import torch

META = {"mode": "forward", "fake": {"do": "DO"}}


def build_inputs():
    return (torch.ones(2, 3),)


def fn(a):
    b = a.relu()
    return b
"""


@pytest.fixture
def failing(tmp_path):
    path = tmp_path / "long.py"
    path.write_text(TEXT.replace("DO", "wrong_value"))
    return path


def test_a_file_is_reduced_alone(failing, tmp_path, capsys):
    small = tmp_path / "small.py"
    assert main(["reduce", str(failing), "--target", "fake:", "--out", str(small)]) == Exit.DONE
    said = capsys.readouterr()
    assert said.out == "" and "statements 1 → 0" in said.err and "nothing left to try" in said.err
    assert "relu" not in Program.parse(small.read_text()).text


def test_the_smaller_program_goes_to_standard_output(failing, capsys):
    assert main(["reduce", str(failing), "--target", "fake:"]) == Exit.DONE
    assert Program.parse(capsys.readouterr().out).meta["fake"]["do"] == "wrong_value"


def test_json_tells_everything(failing, capsys):
    assert main(["reduce", str(failing), "--target", "fake:", "--json", "--budget", "1"]) == Exit.DONE
    told = json.loads(capsys.readouterr().out)
    assert told["kind"] == "wrong_value" and told["same_signature"] and told["executions"] == 1 and not told["complete"]
    assert told["statements"][0] == 1 and Program.parse(told["text"])


def test_a_program_that_does_not_fail_is_said(tmp_path, capsys):
    path = tmp_path / "sound.py"
    path.write_text(TEXT.replace("DO", "pass"))
    assert main(["reduce", str(path), "--target", "fake:", "--json"]) == Exit.NOT_REPRODUCED
    assert json.loads(capsys.readouterr().out)["kind"] == "pass"


def test_a_folder_that_is_not_there_is_said(failing, capsys):
    assert main(["reduce", str(failing), "--target", "fake:", "--out", "/nowhere/at/all.py"]) == Exit.USAGE
    assert "--out" in capsys.readouterr().err
