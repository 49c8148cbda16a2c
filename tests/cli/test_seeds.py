"""``eddy seeds``: what it prints, writes and refuses. On the fake harness, so nothing of torch runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from fuzzer.cli import main
from fuzzer.exits import Exit

TESTS = """
import torch


def test_one():
    torch.compile(lambda x: x + 1)(torch.ones(3))


def test_two():
    assert True
"""


@pytest.fixture
def eddy(capsys: pytest.CaptureFixture[str]) -> Any:
    """Runs the command; returns (exit status, standard output, standard error)."""

    def run(*arguments: object) -> tuple[int, str, str]:
        try:
            status = main([str(argument) for argument in arguments])
        except SystemExit as left:  # argparse
            status = int(left.code or 0)
        printed = capsys.readouterr()
        assert "Traceback" not in printed.err
        return status, printed.out, printed.err

    return run


def test_import_counts_writes_and_lists(eddy: Any, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    out = tmp_path / "seeds"
    status, printed, _error = eddy(
        "seeds", "import", tmp_path / "test_a.py", "--out", out, "--eager", "--target", "fake:", "--json"
    )
    told = json.loads(printed)
    assert status == Exit.DONE
    assert (told["tests"], told["tests_for_cpu"], told["programs"]) == (2, 1, 1)
    assert told["not_imported"][0]["reason"] == "nothing is compiled"
    assert told["runnable"] == len(told["written"]) == len(list(out.glob("*.py")))

    status, printed, _error = eddy("seeds", "list", out, "--json")
    assert status == Exit.DONE and len(printed.splitlines()) == told["runnable"]


def test_the_table_says_why(eddy: Any, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text(TESTS)
    status, printed, _error = eddy("seeds", "import", tmp_path, "--eager", "--target", "fake:")
    assert status == Exit.DONE
    assert "tests found           2" in printed and "nothing is compiled (such as test_two" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("import", "absent"), "absent: no such file or folder"),
        (("list", "absent"), "absent: no such folder"),
        (("trace", "--out", "out", "absent.py"), "absent.py: no such script"),
        (("trace", "--out", "out", "--target", "/nowhere/python", __file__), "is not an executable"),
        (("import", __file__, "--eager", "--target", "fake:", "--out", __file__), "is a file; name a folder"),
    ],
)
def test_bad_input_is_one_line(eddy: Any, arguments: tuple[str, ...], words: str) -> None:
    status, _printed, error = eddy("seeds", *arguments)
    assert status in (Exit.USAGE, Exit.TARGET) and words in error and error.count("\n") == 1
